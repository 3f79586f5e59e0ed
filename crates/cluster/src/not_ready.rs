//! Endpoints of a slice that are not ready. They are in no answer and in no look-up by address: explanations show
//! them, since the reason why a name has no records is often that its pods are not ready.

use host::invariant::{Expected as _, holds};

use crate::columns::{Address, Addresses, Labels};
use crate::dashed;

/// Maximum number of endpoints that are kept of a slice. An explanation shows fewer; the others are kept so that an
/// endpoint can be found by its label, which matters for StatefulSets. With names of 40 bytes, 16 take 900 bytes. Of
/// 100,000 endpoints in 10,000 slices, none of which is ready, they take 3.4 MiB more than if all were ready.
pub(crate) const NOT_READY_MAX: usize = 16;

/// Endpoints of a slice that are not ready.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotReady {
    /// Number of all of them.
    pub(crate) total: u32,
    /// Addresses of the first ones, at most [`NOT_READY_MAX`], in the order of the object.
    pub(crate) addresses: Addresses,
    /// Names of their pods, or else their hostnames.
    pub(crate) pods: Option<Box<Labels>>,
    /// Labels below the Service that are not derived from their addresses.
    pub(crate) labels: Option<Box<Labels>>,
}

/// Endpoint that is not ready.
#[derive(Clone, Copy, Debug)]
pub struct NotReadyEndpoint<'a> {
    list: &'a NotReady,
    at: usize,
}

impl NotReady {
    /// Checks a list that was just built.
    pub(crate) fn check(&self) {
        let len = self.addresses.len();
        holds(len <= NOT_READY_MAX, "the endpoints that are kept are bounded");
        holds(len <= self.total as usize, "the endpoints that are kept are counted too");
        let fits = |labels: &Option<Box<Labels>>| labels.as_ref().is_none_or(|labels| labels.len() == len);
        holds(fits(&self.pods) && fits(&self.labels), "each endpoint has a place for its pod and its label");
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = NotReadyEndpoint<'_>> {
        (0..self.addresses.len()).map(|at| NotReadyEndpoint { list: self, at })
    }
}

impl<'a> NotReadyEndpoint<'a> {
    /// Returns the address.
    #[must_use]
    pub fn address(self) -> Address<'a> {
        self.list.addresses.get(self.at)
    }

    /// Returns the name of the pod (`targetRef`), or else the hostname; `None` if the endpoint has neither.
    #[must_use]
    pub fn pod(self) -> Option<&'a str> {
        text(&self.list.pods, self.at)
    }

    /// Returns true if the endpoint would have this label below its Service. The label must be in lower case.
    #[must_use]
    pub fn is_called(self, label: &[u8]) -> bool {
        match (text(&self.list.labels, self.at), self.address()) {
            (Some(own), _) => own.as_bytes() == label,
            (None, Address::Ip(ip)) => dashed::read_endpoint(label) == Some(ip),
            (None, Address::Name(_)) => false,
        }
    }
}

fn text(labels: &Option<Box<Labels>>, at: usize) -> Option<&str> {
    str::from_utf8(labels.as_ref()?.get(at)?).ok().expected("a label that was joined from text")
}

#[cfg(test)]
mod tests {
    use super::NOT_READY_MAX;
    use crate::Spec;
    use crate::scenario::{ALL, Stage, play};

    #[test]
    fn keeps_endpoints_that_are_not_ready_out_of_the_answers() {
        play(
            "at 1
             svc alpha/web@1 ips=None
             slice alpha/web-a@1 of=web v4=10.1.0.5#w0,!10.1.0.7#w1~p-1,!10.1.0.8 ports=http:80/TCP
             slice alpha/web-b@1 of=web v6=!fd00::9#w2
             ? unready alpha/web = 3 p-1=10.1.0.7 -=10.1.0.8 w2=fd00::9
             ? unready alpha/web w1 = p-1=10.1.0.7
             ? unready alpha/web 10-1-0-7 =
             ? unready alpha/web 10-1-0-8 = -=10.1.0.8
             ? unready alpha/web w0 =
             ? svc alpha/web = Headless :-/ [:-/] [w0=10.1.0.5 http:80/TCP]
             ? called alpha/web w1 =
             ? at 10.1.0.7 =
             ? counts = 0 1 2 0 0
             at 2
             slice alpha/web-a@2 of=web v4=10.1.0.5#w0,!10.1.0.7#w1~p-1,!bad ports=http:80/TCP => updated
             ? unready alpha/web = 3 p-1=10.1.0.7 w2=fd00::9
             ? serial = 1
             ? counts = 0 1 2 0 0
             at 3
             slice alpha/web-a@3 of=web v4=10.1.0.5#w0,10.1.0.7#w1~p-1 ports=http:80/TCP => updated
             ? unready alpha/web = 1 w2=fd00::9
             ? at 10.1.0.7 = alpha/web:w1
             ? serial = 3
             -slice alpha/web-b
             ? unready alpha/web = 0",
        );
    }

    #[test]
    fn keeps_the_first_endpoints_of_a_slice_that_are_not_ready_and_their_number() {
        let most = NOT_READY_MAX;
        let endpoints: Vec<String> = (0..500).map(|at| format!("!10.1.{}.{}~p-{at}", at / 256, at % 256)).collect();
        let mut stage = Stage::new(&Spec::new(&ALL, &[]));
        stage.play("svc alpha/web ips=None");
        stage.play(&format!("slice alpha/web-a of=web v4={}", endpoints.join(",")));
        let shown = stage.ask("unready alpha/web");
        assert!(shown.starts_with("500 p-0=10.1.0.0 p-1=10.1.0.1 "), "{shown}");
        assert_eq!(shown.split(' ').count(), most + 1, "{shown}");
    }

    #[test]
    fn labels_endpoints_that_are_not_ready_by_pod_name_if_configured() {
        Stage::new(&Spec { endpoint_pod_names: true, ..Spec::new(&ALL, &[]) }).play(
            "svc alpha/web ips=None
             slice alpha/web-a of=web v4=!10.1.0.5~p-0
             ? unready alpha/web p-0 = p-0=10.1.0.5
             ? unready alpha/web 10-1-0-5 =
             slice alpha/web-n of=web names=!host.example.com
             ? unready alpha/web host-example-com = -=host.example.com",
        );
    }
}
