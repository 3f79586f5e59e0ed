//! First process of the node: mounts, network, components.
//!
//! It runs in mount, PID, network and UTS namespaces of its own. When it ends, the kernel ends all its processes and
//! removes mounts and network. It starts components again that have ended, and reaps the orphans of containers.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, wait};

use super::components::{Component, all, of_second, second_node};
use super::home::{HOLDS, Home, LOGS, PROCESSES};
use super::network::{self, API_PORT};
use super::programs;
use super::steps::{output_of, run, write};
use xtask::Failed;

/// Pause before a component is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(500);
/// Interval between looks at ended processes.
const TICK: Duration = Duration::from_millis(20);
/// Settings of the kernel that the kubelet changes, with the values that it wants. They belong to the whole machine.
const SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];
/// Folders of the machine that programs write to, each replaced by an own one.
const FOLDERS: [&str; 2] = ["/var/lib", "/var/log"];

/// Runs the node until it is killed.
pub(crate) fn main(home: &Home) -> Result<(), Failed> {
    fixed_settings(home)?;
    mounts(home, network::FIRST)?;
    write("/proc/sys/kernel/hostname", network::FIRST.name)?;
    network::create()?;
    let etcd = output_of(Command::new("etcd").arg("--version")).unwrap_or_default();
    let [first, mut second] = all(home, programs::etcd_streams_lists(&etcd));
    if home.nodes().len() > 1 {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        second.push(second_node(home, &own.display().to_string()));
    }
    let mut supervisor = Supervisor { home, running: BTreeMap::new(), waiting: Vec::new() };
    supervisor.waiting.extend(first.into_iter().map(|component| (Instant::now(), component)));
    let mut second = Some(second);
    loop {
        supervisor.tick();
        if second.is_some() && TcpStream::connect(("127.0.0.1", API_PORT)).is_ok() {
            let components = second.take().into_iter().flatten();
            supervisor.waiting.extend(components.map(|component| (Instant::now(), component)));
        }
        std::thread::sleep(TICK);
    }
}

/// Runs the second node until it is killed. The world outside exists, in the mounts that it has from the first node.
pub(crate) fn second(home: &Home) -> Result<(), Failed> {
    let node = network::SECOND;
    network::join(node)?;
    mounts(home, node)?;
    write("/proc/sys/kernel/hostname", node.name)?;
    control_groups(node)?;
    let components = of_second(home).into_iter().map(|component| (Instant::now(), component));
    let mut supervisor = Supervisor { home, running: BTreeMap::new(), waiting: components.collect() };
    loop {
        supervisor.tick();
        std::thread::sleep(TICK);
    }
}

/// Creates the control group below which the kubelet of a node has its pods, in each hierarchy.
fn control_groups(node: network::Node) -> Result<(), Failed> {
    let root = Path::new("/sys/fs/cgroup");
    let is_unified = root.join("cgroup.controllers").exists();
    let all = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let hierarchies: Vec<_> =
        if is_unified { vec![root.to_owned()] } else { all.filter(|path| path.is_dir()).collect() };
    for hierarchy in hierarchies {
        let group = hierarchy.join(node.name);
        std::fs::create_dir_all(&group).map_err(|error| format!("{}: {error}", group.display()))?;
    }
    Ok(())
}

/// Replaces settings of the kernel by files, so that the kubelets do not change them.
fn fixed_settings(home: &Home) -> Result<(), Failed> {
    for (at, (name, value)) in SETTINGS.iter().enumerate() {
        let fake = home.write(&format!("settings/{at}"), format!("{value}\n"))?;
        run(&format!("mount --bind {} /proc/sys/{name}", fake.display()))?;
    }
    Ok(())
}

/// Replaces the folders that the components would write to.
fn mounts(home: &Home, node: network::Node) -> Result<(), Failed> {
    // The kubelet requires that mounts propagate to containers.
    run("mount --make-rshared /")?;
    run("mount -t tmpfs tmpfs /run")?;
    for folder in ["/run/netns", "/run/lock", "/run/containerd"] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
    }
    for folder in FOLDERS {
        if home.folder().starts_with(folder) || home.folder().starts_with("/run") {
            return Err(format!("{} is in {folder}; choose another --folder", home.folder().display()));
        }
        let own = home.make_folder(&node.file(folder.trim_start_matches('/')))?;
        run(&format!("mount --bind {} {folder}", own.display()))?;
    }
    for folder in ["/var/lib/kubelet", "/var/log/pods", "/var/log/containers"] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
    }
    Ok(())
}

/// Components by process ID, and those to start at a time.
struct Supervisor<'a> {
    home: &'a Home,
    running: BTreeMap<i32, Component>,
    waiting: Vec<(Instant, Component)>,
}

impl Supervisor<'_> {
    /// Reaps ended processes, and starts components whose time has come.
    fn tick(&mut self) {
        while let Ok(Some((process, _))) = wait(WaitOptions::NOHANG) {
            if let Some(component) = self.running.remove(&process.as_raw_nonzero().get()) {
                println!("{} ended", component.name);
                self.waiting.push((Instant::now() + RESTART_PAUSE, component));
            }
        }
        for (time, component) in std::mem::take(&mut self.waiting) {
            let is_held = self.home.path(HOLDS).join(&component.name).exists();
            if is_held || Instant::now() < time {
                self.waiting.push((time, component));
                continue;
            }
            match self.start(&component) {
                Ok(process) => {
                    println!("{} started as {process}", component.name);
                    self.running.insert(process, component);
                }
                Err(error) => {
                    println!("{}: {error}", component.name);
                    self.waiting.push((Instant::now() + RESTART_PAUSE, component));
                }
            }
        }
    }

    fn start(&self, component: &Component) -> Result<i32, Failed> {
        let path = self.home.path(LOGS).join(format!("{}.log", component.name));
        let open = || OpenOptions::new().create(true).append(true).open(&path);
        let (out, errors) = open().and_then(|out| Ok((out, open()?))).map_err(|error| error.to_string())?;
        let mut command = Command::new(&component.program);
        command.args(&component.arguments).current_dir(self.home.folder());
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        let child = command.spawn().map_err(|error| error.to_string())?;
        let _ = self.home.write(&format!("{PROCESSES}/{}", component.name), child.id().to_string());
        i32::try_from(child.id()).map_err(|error| error.to_string())
    }
}
