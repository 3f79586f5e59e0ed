//! Servers that have the objects of a subscription: relays, in the order in which they are asked, then the API server.

use std::rc::Rc;

use cluster::{Relays, Request};
use host::invariant::holds;
use listwatch::Order;
use rand::seq::SliceRandom;

use crate::api::Api;
use crate::credentials::Profile;
use crate::meter::Meter;
use crate::{SetupError, Timing, credentials};

/// Servers of a subscription. There is at least one.
pub(crate) struct Servers {
    /// Relays, then the API server.
    list: Vec<Rc<Api>>,
    order: Option<Order>,
}

impl Servers {
    /// Reads the configuration of the servers. It does not connect yet.
    ///
    /// # Errors
    /// A missing or unreadable file, or an invalid setting.
    pub(crate) fn new(request: &Request, timing: &Rc<Timing>, meter: &Rc<Meter>) -> Result<Servers, SetupError> {
        let Some(relays) = &request.relays else {
            return Ok(Servers { list: vec![server(request, timing, meter)?], order: None });
        };
        let mut urls: Vec<&String> = relays.urls.iter().collect();
        // The nodes of a cluster have the same configuration.
        urls.shuffle(&mut (timing.random)());
        let relay = |url: &&String| Api::relay((relays, url.as_str()), request, timing, meter).map(Rc::new);
        let mut list = urls.iter().map(relay).collect::<Result<Vec<_>, _>>()?;
        let order = timing.order(list.len(), !relays.only);
        if !relays.only {
            list.push(server(request, timing, meter)?);
        }
        holds(order.relays > 0 && order.relays <= list.len(), "the relays are the first servers of the list");
        Ok(Servers { list, order: Some(order) })
    }

    /// Order of the servers, if there are several kinds.
    pub(crate) fn order(&self) -> Option<&Order> {
        self.order.as_ref()
    }

    /// Returns the server that is asked first.
    pub(crate) fn first(&self) -> &Rc<Api> {
        &self.list[0]
    }

    /// Returns a server by its number.
    pub(crate) fn get(&self, number: usize) -> &Rc<Api> {
        holds(number < self.list.len(), "the number of a server is that of one in the list");
        &self.list[number.min(self.list.len() - 1)]
    }

    /// Returns true if the server with this number is a relay.
    pub(crate) fn is_relay(&self, number: usize) -> bool {
        self.order.as_ref().is_some_and(|order| number < order.relays)
    }
}

/// Checks the settings of relays as far as files allow.
///
/// # Errors
/// The errors of [`Servers::new`].
pub(crate) fn check(relays: &Relays) -> Result<(), SetupError> {
    relays.urls.iter().try_for_each(|url| credentials::relay(relays, url, Profile::Dns).map(drop))
}

fn server(request: &Request, timing: &Rc<Timing>, meter: &Rc<Meter>) -> Result<Rc<Api>, SetupError> {
    let config = credentials::config(&request.source)?;
    Ok(Rc::new(Api::new(request, &config, Rc::clone(timing), Rc::clone(meter))))
}
