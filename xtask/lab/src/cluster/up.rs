//! Start and end of a cluster.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ArgMatches;

use super::components::PORTOLAN;
use super::home::{HOLDS, Home, LOGS, NODES, PROCESS, PROCESSES};
use super::inside::{Inside, wait_until};
use super::{configuration, credentials, images, network, programs};
use xtask::image::{Binary, Flavor};
use xtask::{Failed, binary, read_bytes};

/// Limits for the API server, the node and the cluster DNS.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Folders in the hierarchies of control groups: that of the first kubelet, and that above the groups of the second.
const CONTROL_GROUPS: [&str; 2] = ["kubepods", network::SECOND.name];
/// Image in the manifest, which stands for that of the user.
const PLACEHOLDER: &str = "portolan:latest";

/// Starts a cluster.
pub(crate) fn up(home: &Home, options: &ArgMatches) -> Result<(), Failed> {
    programs::check()?;
    if home.node_process().is_some() {
        return Err(format!("a cluster runs in {}; end it with `cargo xtask cluster down`", home.folder().display()));
    }
    let dns = options.get_one::<String>("dns").map_or("", String::as_str);
    let coredns = options.get_one::<PathBuf>("coredns");
    if dns == "coredns" && coredns.is_none() {
        return Err("`--dns coredns` needs `--coredns FILE`".to_owned());
    }
    let path = options
        .get_one::<PathBuf>("binary")
        .cloned()
        .map_or_else(|| binary::static_binary(None).map(|built| built.program), Ok)?;
    let (binary, coredns) = (Binary::read_with_keeper(&path)?, coredns.map(|path| Binary::read(path)).transpose()?);
    prepare(home, &path, options.get_one::<u8>("nodes").copied().unwrap_or(1))?;
    let started = Instant::now();
    start_node(home)?;
    // The node starts meanwhile.
    let packing = std::thread::spawn(move || {
        let coredns = coredns.map(images::of_coredns).transpose()?;
        Ok::<_, Failed>(images::of_portolan(&binary)?.into_iter().chain(coredns).collect())
    });
    let inside = Inside::find(home)?;
    wait_for("the API server", &inside, || inside.kubectl("get --raw=/readyz").map(drop))?;
    println!("API server ready after {:.1} s", started.elapsed().as_secs_f64());
    start_nodes(&inside)?;
    let names: Vec<&str> = home.nodes().iter().map(|node| node.name).collect();
    println!("node {} Ready after {:.1} s", names.join(" and "), started.elapsed().as_secs_f64());
    let packed: Vec<Vec<u8>> = packing.join().map_err(|_| "the images cannot be packed".to_owned())??;
    images::import_all(&inside, &packed)?;
    let image = match dns {
        "portolan" => images::portolan(Flavor::Server),
        "coredns" => images::COREDNS.to_owned(),
        _ => return Ok(()),
    };
    install_dns(&inside, &image)?;
    println!("cluster DNS {image} serves on {} after {:.1} s", network::DNS, started.elapsed().as_secs_f64());
    Ok(())
}

/// Gives the nodes the images without which no pod starts, and waits until they are ready.
fn start_nodes(inside: &Inside<'_>) -> Result<(), Failed> {
    for node in inside.home.nodes() {
        let place = inside.on(*node);
        wait_for("containerd", inside, || place.output("ctr", &["version"]).map(drop))?;
    }
    images::import_all(inside, &images::base()?)?;
    wait_for("the nodes", inside, || {
        let ready =
            inside.kubectl("get node -o=jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].status}")?;
        let count = ready.split_whitespace().filter(|word| *word == "True").count();
        let all = inside.home.nodes().len();
        if count == all { Ok(()) } else { Err(format!("{count} of {all} nodes are ready")) }
    })
}

/// Writes all files of the cluster, in place of those of an earlier one.
fn prepare(home: &Home, portolan: &Path, nodes: u8) -> Result<(), Failed> {
    let second = network::SECOND.name;
    let earlier = ["etcd", "var", LOGS, PROCESSES, HOLDS, "containerd", "addresses", "images", "pki", second];
    for name in earlier {
        let _ = std::fs::remove_dir_all(home.path(name));
    }
    for name in [LOGS, PROCESSES, HOLDS] {
        home.make_folder(name)?;
    }
    home.write(NODES, nodes.to_string())?;
    let tokens = credentials::write(home)?;
    configuration::write(home, &tokens)?;
    let copy = home.write(PORTOLAN, "")?;
    std::fs::copy(portolan, &copy).map_err(|error| format!("{}: {error}", portolan.display()))?;
    Ok(())
}

/// Starts the first process of the node in new namespaces, and writes its process ID.
fn start_node(home: &Home) -> Result<(), Failed> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let log = home.path(LOGS).join("node.log");
    let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = log.try_clone().map_err(|error| error.to_string())?;
    // The node must outlive the terminal of this program.
    let mut command = Command::new("setsid");
    command.args([
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--net",
        "--uts",
        "--propagation",
        "private",
        "--mount-proc",
    ]);
    command.arg(own).args(["cluster", "node", "--folder"]).arg(home.folder());
    let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
    let mut child = child.map_err(|error| format!("setsid: {error}"))?;
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    wait_until("the namespaces", Duration::from_secs(10), || {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("unshare: {status}; see {}", home.text("log/node.log")));
        }
        let process = std::fs::read_to_string(&children).map_err(|error| error.to_string())?;
        let process = process.split_whitespace().next().ok_or("not started yet")?;
        home.write(PROCESS, process)?;
        home.node_process().map(drop).ok_or_else(|| "not started yet".to_owned())
    })
}

/// Waits for a part of the cluster, as long as the node runs.
fn wait_for(what: &str, inside: &Inside<'_>, mut condition: impl FnMut() -> Result<(), Failed>) -> Result<(), Failed> {
    let mut failed = None;
    wait_until(what, START_LIMIT, || {
        if !inside.is_alive() {
            failed = Some(format!("the node has ended; see {}", inside.home.text("log/node.log")));
            return Ok(());
        }
        condition()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Installs a DNS server with the names, labels and arguments of kubeadm, and waits until its pods are ready.
pub(crate) fn install_dns(inside: &Inside<'_>, image: &str) -> Result<(), Failed> {
    let manifest = read_bytes(Path::new("deploy/new-cluster.yaml"))?;
    let manifest = String::from_utf8_lossy(&manifest).replace(PLACEHOLDER, image);
    inside.kubectl_with("apply -f -", &manifest)?;
    inside.kubectl("-n kube-system rollout status deployment/coredns --timeout=90s")?;
    // kube-proxy sets its rules up to a second later.
    wait_until("answers of the cluster DNS", START_LIMIT, || {
        let name = format!("kubernetes.default.svc.{}", network::DOMAIN);
        inside.output("busybox", &["nslookup", "-type=a", &name, network::DNS]).map(drop)
    })
}

/// Ends a cluster.
pub(crate) fn down(home: &Home) -> Result<(), Failed> {
    let Some(process) = home.node_process() else {
        println!("no cluster runs in {}", home.folder().display());
        return Ok(());
    };
    let status = Command::new("kill").args(["-KILL", &process.to_string()]).status();
    status.map_err(|error| format!("kill: {error}"))?;
    wait_until("the end of the node", START_LIMIT, || {
        let runs = Path::new(&format!("/proc/{process}")).exists();
        if runs { Err(format!("process {process} runs")) } else { Ok(()) }
    })?;
    remove_control_groups();
    println!("the cluster in {} has ended", home.folder().display());
    Ok(())
}

/// Removes the control groups of pods, which are empty now.
fn remove_control_groups() {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    for hierarchy in hierarchies.chain([root.to_owned()]) {
        CONTROL_GROUPS.iter().for_each(|group| remove_empty(&hierarchy.join(group)));
    }
}

/// Removes a control group and those below it.
fn remove_empty(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}
