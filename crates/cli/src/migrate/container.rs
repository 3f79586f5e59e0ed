//! Containers of the kube-dns pod: recognises the program that a container runs and extracts its arguments. The crate
//! `migrate` interprets them.

use serde_json::Value;

/// Kind of program that a container of kube-dns runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContainerProgram {
    /// Program with flags of its own, optionally followed by `--` and the arguments of dnsmasq.
    Flags,
    /// dnsmasq itself.
    Dnsmasq,
}

/// Names of the programs, images and containers of kube-dns. Names such as `dnsmasq-metrics` or `kubedns-autoscaler`
/// must not match, so these are compared as a whole.
const KNOWN: [(&str, ContainerProgram); 6] = [
    ("dnsmasq-nanny", ContainerProgram::Flags),
    ("dnsmasq", ContainerProgram::Dnsmasq),
    ("kube-dnsmasq", ContainerProgram::Dnsmasq),
    ("kube-dns", ContainerProgram::Flags),
    ("kubedns", ContainerProgram::Flags),
    ("sidecar", ContainerProgram::Flags),
];
const EXECHEALTHZ: &str = "exechealthz";
/// Prefix and suffixes around the program name in the name of an image.
const IMAGE_PREFIX: &str = "k8s-dns-";
const ARCHITECTURES: [&str; 5] = ["-amd64", "-arm", "-arm64", "-ppc64le", "-s390x"];

/// Returns the arguments of a container of kube-dns, with those of dnsmasq after `--`; `None` if it is another
/// container. The program decides, or the image if there is no command, or the container's name if the image is
/// unknown.
pub(super) fn arguments(container: &Value) -> Option<Vec<String>> {
    let mut words = words(&container["command"]);
    words.extend(self::words(&container["args"]));
    let programs = words.iter().take_while(|word| !word.starts_with('-')).count();
    let given = words.split_off(programs);
    let text = |key: &str| container[key].as_str();
    let program = match words.as_slice() {
        [] => text("image").and_then(program_of).or_else(|| text("name").and_then(program_of)),
        // For example `portolan kube-dns`, which has two words.
        programs => programs.iter().find_map(|program| program_of(program)),
    };
    Some(match program? {
        // dnsmasq-nanny can run in a container named `dnsmasq`; its arguments have a `--` of their own.
        ContainerProgram::Dnsmasq if !given.iter().any(|word| word == "--") => [vec!["--".to_owned()], given].concat(),
        _ => given,
    })
}

/// Returns true for exechealthz, the container of older pods that probed the others by running a command.
pub(super) fn is_exechealthz(container: &Value) -> bool {
    let image = container["image"].as_str().map_or("", file_name);
    let programs = words(&container["command"]);
    image.starts_with(EXECHEALTHZ) || programs.first().is_some_and(|program| file_name(program) == EXECHEALTHZ)
}

/// Removes the program name from the start of a dnsmasq command line, if it has one.
pub(super) fn without_program(words: &[String]) -> &[String] {
    match words {
        [program, rest @ ..] if file_name(program) == "dnsmasq" => rest,
        words => words,
    }
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn program_of(text: &str) -> Option<ContainerProgram> {
    let name = file_name(text).split([':', '@']).next()?;
    let name = name.strip_prefix(IMAGE_PREFIX).unwrap_or(name);
    let name = ARCHITECTURES.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, program)| *program)
}

/// Returns the last component of the path of a program, or of an image with its tag.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn recognises_a_container_by_program_image_or_name() {
        for (container, wanted) in [
            (json!({"image": "r/k8s-dns-kube-dns:1", "args": ["--v=2"]}), Some("--v=2")),
            (json!({"image": "r/kubedns-amd64:1.6", "args": ["--v=2"]}), Some("--v=2")),
            (json!({"image": "r/mine:1", "name": "kubedns", "args": ["--v=2"]}), Some("--v=2")),
            (json!({"image": "r/mine:1", "name": "sidecar", "args": ["--v=2"]}), Some("--v=2")),
            (json!({"image": "r/mine:1", "name": "dnsmasq", "args": ["-v=2", "--", "-k"]}), Some("-v=2 -- -k")),
            (json!({"image": "r/mine:1", "name": "dnsmasq", "args": ["-k"]}), Some("-- -k")),
            (json!({"image": "g/kube-dnsmasq-amd64:1.4", "args": ["-k", "-c9"]}), Some("-- -k -c9")),
            (json!({"image": "a", "command": ["/usr/sbin/dnsmasq", "-k"], "args": ["-c9"]}), Some("-- -k -c9")),
            (json!({"image": "a", "command": ["/dnsmasq-nanny"], "args": ["-v=2", "--", "-k"]}), Some("-v=2 -- -k")),
            (json!({"image": "portolan:latest", "args": ["kube-dns", "--v=2"]}), Some("--v=2")),
            (json!({"image": "a", "command": ["/portolan", "kube-dns"], "args": ["--v=2"]}), Some("--v=2")),
            (json!({"image": "g/exechealthz-amd64:1.2", "name": "healthz", "args": ["-cmd=x"]}), None),
            (json!({"image": "g/dnsmasq-metrics-amd64:1.0", "name": "dnsmasq-metrics", "args": ["--v=2"]}), None),
            (json!({"image": "r/autoscaler:1", "name": "kubedns-autoscaler", "args": ["--v=2"]}), None),
            (json!({"image": "h:5000/k8s-dns-sidecar-arm64@sha256:0a", "args": ["--v=2"]}), Some("--v=2")),
            (json!({"image": "r/kube-dns/web:1", "args": ["--v=2"]}), None),
            (json!({"name": "dnsmasq", "command": ["/bin/sh", "-c", "exec it"]}), None),
        ] {
            let read = arguments(&container).map(|words| words.join(" "));
            assert_eq!(read.as_deref(), wanted, "{container}");
        }
    }

    #[test]
    fn ignores_the_program_name_in_a_dnsmasq_command_line() {
        let read = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            without_program(&words).join(" ")
        };
        for text in ["dnsmasq -k -c9", "/usr/sbin/dnsmasq -k -c9", "-k -c9"] {
            assert_eq!(read(text), "-k -c9", "{text}");
        }
    }
}
