//! `cargo xtask cluster`: a real Kubernetes node on this machine, to try and test DNS servers in.
//!
//! `up` starts etcd, containerd, the kubelet, kube-proxy and the control plane of Kubernetes in namespaces of their
//! own, and installs a cluster DNS. Nothing of the machine changes: mounts, processes, network, packet filter and host
//! name belong to the namespaces, and all files are in one folder. `run` runs a command in them. `test` measures what a
//! cluster loses while its DNS changes. `down` ends everything.
//!
//! - `node`: the first process in the namespaces.
//! - `components`, `configuration`, `credentials`, `network`: what a node consists of.
//! - `inside`: programs in the namespaces.
//! - `images`: images, none of which is fetched.
//! - `trials`: changes of the cluster under load.

mod components;
mod configuration;
mod credentials;
mod home;
mod images;
mod inside;
mod network;
mod node;
mod programs;
mod steps;
mod trials;
mod up;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use clap::{Arg, ArgMatches, Command, value_parser};

use self::home::Home;
use self::inside::Inside;
use xtask::{Failed, binary, root};

/// Returns the definition of the command line.
pub(crate) fn command() -> Command {
    let folder = Arg::new("folder")
        .long("folder")
        .value_name("FOLDER")
        .global(true)
        .value_parser(value_parser!(PathBuf))
        .help("Folder with all files of the cluster [default: target/cluster]");
    let coredns = Arg::new("coredns")
        .long("coredns")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Static binary of CoreDNS, to compare with and to swap");
    Command::new("cluster")
        .about("Run a real Kubernetes node in namespaces of this machine, and test DNS servers in it")
        .subcommand_required(true)
        .arg(folder)
        .subcommand(
            Command::new("up")
                .about("Start the node and install a cluster DNS")
                .arg(binary::argument())
                .arg(coredns)
                .arg(
                    Arg::new("nodes")
                        .long("nodes")
                        .value_name("NUMBER")
                        .value_parser(value_parser!(u8).range(1..=2))
                        .default_value("1")
                        .help("Number of nodes, 1 or 2, each with a kubelet and a kube-proxy of its own"),
                )
                .arg(
                    Arg::new("dns")
                        .long("dns")
                        .value_parser(["portolan", "coredns", "none"])
                        .default_value("portolan")
                        .help("Cluster DNS to install"),
                ),
        )
        .subcommand(
            Command::new("run")
                .about("Run a command, such as kubectl or helm, in the namespaces of a node")
                .arg(
                    Arg::new("node")
                        .long("node")
                        .value_parser([network::FIRST.name, network::SECOND.name])
                        .default_value(network::FIRST.name)
                        .help("Node to run the command on"),
                )
                .arg(Arg::new("words").required(true).num_args(1..).trailing_var_arg(true).allow_hyphen_values(true)),
        )
        .subcommand(
            Command::new("import")
                .about("Import an archive of images, or of a root file system as an image")
                .arg(
                    Arg::new("archive").value_name("FILE").required(true).value_parser(value_parser!(PathBuf)).help(
                        "OCI archive of images; with `--name`, a tar archive of a root file system, not compressed",
                    ),
                )
                .arg(
                    Arg::new("name")
                        .long("name")
                        .value_name("IMAGE")
                        .help("Import a root file system as an image of this name, with registry and tag"),
                )
                .arg(
                    Arg::new("entrypoint")
                        .long("entrypoint")
                        .value_name("PROGRAM")
                        .requires("name")
                        .help("Program that containers of this image run, unless their pod has a command"),
                ),
        )
        .subcommand(trials::command())
        .subcommand(Command::new("down").about("End the node with all its processes"))
        .subcommand(Command::new("node").hide(true))
        .subcommand(Command::new("second-node").hide(true))
        .subcommand(trials::load_command())
}

/// Runs a subcommand.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let (name, options) = options.subcommand().unwrap_or(("", options));
    let default = || root().join("target/cluster");
    let home = Home::new(&options.get_one::<PathBuf>("folder").cloned().unwrap_or_else(default))?;
    match name {
        "up" => up::up(&home, options),
        "run" => run_inside(&home, options),
        "import" => import(&home, options),
        "test" => trials::run(&home, options),
        "node" => node::main(&home),
        "second-node" => node::second(&home),
        "load" => trials::load(options),
        _ => up::down(&home),
    }
}

fn import(home: &Home, options: &ArgMatches) -> Result<(), Failed> {
    let inside = Inside::find(home)?;
    let archive = options.get_one::<PathBuf>("archive").map_or(Path::new(""), PathBuf::as_path);
    let Some(name) = options.get_one::<String>("name") else {
        println!("{}", images::import(&inside, archive)?);
        return Ok(());
    };
    let image = images::of_file_system(name, options.get_one("entrypoint"), archive)?;
    images::import_all(&inside, &[image])?;
    println!("{name}");
    Ok(())
}

fn run_inside(home: &Home, options: &ArgMatches) -> Result<(), Failed> {
    let words: Vec<&str> = options.get_many::<String>("words").into_iter().flatten().map(String::as_str).collect();
    let (program, words) = words.split_first().ok_or("no command")?;
    let name = options.get_one::<String>("node").map_or("", String::as_str);
    let node = home.nodes().iter().find(|node| node.name == name);
    let node = *node.ok_or_else(|| format!("the cluster has no {name}; start it with `--nodes 2`"))?;
    let status = Inside::find(home)?.on(node).command(program, words).status();
    match status.map_err(|error| format!("nsenter: {error}")) {
        Ok(status) if ExitStatus::success(&status) => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(error),
    }
}
