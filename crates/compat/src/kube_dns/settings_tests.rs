use super::*;

fn read(program: Program, text: &str) -> Result<(Settings, Vec<Warning>), FlagError> {
    let words = CommandLine::parse(text.split_whitespace().map(str::to_owned), program.flags())?;
    Settings::read(program, &words, &|name| match name {
        "KUBERNETES_HOST" => Some("10.0.0.1".to_owned()),
        "PROMETHEUS_PORT" => Some("10055".to_owned()),
        _ => None,
    })
}

#[test]
fn each_program_replaces_its_part_of_the_pod() {
    let parts = |program, text| {
        let (settings, _) = read(program, text).unwrap();
        (settings.kube_dns.is_some(), settings.dnsmasq.is_some(), settings.sidecar.is_some())
    };
    assert_eq!(parts(Program::Pod, ""), (true, true, true));
    assert_eq!(parts(Program::KubeDns, "--domain=x"), (true, false, false));
    assert_eq!(parts(Program::Nanny, "-restartDnsmasq=true -- -k"), (false, true, false));
    assert_eq!(parts(Program::Sidecar, "--probe=a,127.0.0.1,b"), (false, false, true));
    assert_eq!(Program::by_name("kube-dns"), Some(Program::KubeDns));
    assert_eq!(Program::by_name("portolan"), None);
}

#[test]
fn reads_the_flags_of_kube_dns() {
    let (settings, _) = read(
        Program::Pod,
        "--domain=k8s.example. --dns-port=10053 --dns-bind-address=127.0.0.1 --healthz-port=8082 \
         --kube-master-url=http://${KUBERNETES_HOST}:8080 --config-map=kube-dns --nameservers=8.8.8.8",
    )
    .unwrap();
    let kube_dns = settings.kube_dns.unwrap();
    assert_eq!((kube_dns.domain.as_str(), kube_dns.port, kube_dns.pages_port), ("k8s.example", 10053, 8082));
    assert_eq!(kube_dns.api_server.as_deref(), Some("http://10.0.0.1:8080"));
    assert_eq!(kube_dns.metrics.unwrap().port, 10055);
    let name = "kube-dns".to_owned();
    assert_eq!(settings.source, ConfigMapSource::ConfigMap { namespace: "kube-system".to_owned(), name });
    assert_eq!(settings.upstreams, [], "the ConfigMap takes precedence");
    assert_eq!(settings.dnsmasq.unwrap().port, 10053);
}

#[test]
fn polls_a_directory_at_least_every_250_ms() {
    for (text, millis) in [("", 250), ("--config-period=10s", 250), ("--config-period=100ms", 100)] {
        let (settings, _) = read(Program::KubeDns, &format!("--config-dir=/x {text}")).unwrap();
        let every = Duration::from_millis(millis);
        assert_eq!(settings.source, ConfigMapSource::Directory { path: "/x".to_owned(), every }, "{text}");
    }
}

#[test]
fn refuses_invalid_values() {
    for (program, text, said) in [
        (Program::Pod, "--domain=Upper", "--domain: 'Upper' is not a domain"),
        (Program::Pod, "--dns-port=x", "--dns-port: 'x' is not a port"),
        (Program::Pod, "--config-dir=a --config-map=b", "cannot be used together"),
        (Program::Pod, "--kube-master-url=10.0.0.1", "is not a URL"),
        (Program::Pod, "--nameservers=ns.example", "'ns.example' is not a valid name server"),
        (Program::Pod, "--federations=a", "is not a pair"),
        (Program::Pod, "--config-period=often", "is not a time"),
        (Program::Pod, "--probe=a,127.0.0.1,b --probe=a,127.0.0.1,c", "is used twice"),
        (Program::Pod, "--prometheus-namespace=a-b", "letters, digits and _"),
        (Program::Pod, "-- --cache-size=x", "invalid value"),
        (Program::Sidecar, "--dnsmasq-poll-interval-ms=0", "is not a number"),
    ] {
        let problem = read(program, text).unwrap_err().to_string();
        assert!(problem.contains(said), "{text}: {problem}");
    }
}

#[test]
fn parses_durations_as_go_does() {
    for (text, millis) in
        [("10s", Some(10_000)), ("1m30s", Some(90_000)), ("500ms", Some(500)), ("0s", None), ("5", None), ("s", None)]
    {
        assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
    }
}
