//! The seccomp profile of `deploy/seccomp.json`, as the container runtimes apply it: the servers that the tests start
//! run under it, and a test fails if the profile refuses a system call of its server.
//!
//! The filter reports such a call to the test (`SECCOMP_RET_USER_NOTIF`, seccomp_unotify(2)), which refuses it with the
//! error of the profile and keeps its name. The threads that refuse are not under the filter, so a profile that lacks a
//! call fails tests and does not stop them.
#![allow(unsafe_code, reason = "seccomp(2) has no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::{mem, ptr, thread};

use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
use serde_json::Value;

use super::packages::repository;
use super::skip;

/// The audit name of the architecture (linux/audit.h), if the profile lists it.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};
/// Offsets in `struct seccomp_data`: the number of the call, the architecture, and the arguments of 64 bits.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// Returns the profile that `deploy` has.
pub(crate) fn profile() -> Value {
    let text = std::fs::read_to_string(repository().join("deploy/seccomp.json")).expect("the profile");
    serde_json::from_str(&text).expect("JSON")
}

/// System calls of programs that their profile refuses.
#[derive(Clone, Default)]
pub(crate) struct Refused(Arc<Mutex<Vec<Call>>>);

/// Refused system call.
#[derive(Clone, PartialEq)]
struct Call {
    /// The call with its first argument, and the name of the thread.
    text: String,
    /// False for a program that is not of this build, such as a command of *on*.
    is_own: bool,
}

impl Refused {
    /// Returns the calls of all programs so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|call| call.text.clone()).collect()
    }

    /// Says which calls of this build's programs were refused, and what to do; `None` if there were none.
    pub(crate) fn fault(&self) -> Option<String> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own: Vec<&str> = calls.iter().filter(|call| call.is_own).map(|call| call.text.as_str()).collect();
        let list = own.join(", ");
        (!own.is_empty()).then(|| {
            format!(
                "deploy/seccomp.json refused system calls: {list}. If the server needs them, add them to the profile"
            )
        })
    }

    fn add(&self, call: Call) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
}

/// Starts a program of this build under the profile, and others without.
///
/// A program that starts in another folder runs without it too: the child process would change the folder under the
/// filter, where a container runtime does so before.
pub(crate) fn spawn(command: &mut Command) -> (Child, Refused) {
    if !is_own(command.get_program().as_ref()) || command.get_current_dir().is_some() {
        return (command.spawn().expect("the program starts"), Refused::default());
    }
    match confined(command, &profile()) {
        Ok(started) => started,
        Err(error) => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| skip(format_args!("the seccomp profile of all servers: {error}")));
            (command.spawn().expect("the program starts"), Refused::default())
        }
    }
}

/// Returns true for the programs that Cargo has built for these tests, whatever link leads to them.
fn is_own(program: &Path) -> bool {
    let folder = Path::new(env!("CARGO_BIN_EXE_portolan")).parent().and_then(|folder| folder.canonicalize().ok());
    program.canonicalize().is_ok_and(|program| program.parent() == folder.as_deref())
}

/// Starts a program under a profile.
///
/// # Errors
/// Fails if the kernel has no such filter, or this process has one that reports calls.
pub(crate) fn confined(command: &mut Command, profile: &Value) -> io::Result<(Child, Refused)> {
    let (child, refused) = under(profile, || command.spawn())?;
    match child {
        Ok(child) => Ok((child, refused)),
        Err(error) => panic!("the program does not start: {error}; refused: {}", refused.calls().join(", ")),
    }
}

/// Runs a function under a profile, in a thread of its own: a filter is for a thread and what it starts.
///
/// # Errors
/// Fails if the kernel has no such filter, or this process has one that reports calls.
pub(crate) fn under<T: Send>(profile: &Value, run: impl FnOnce() -> T + Send) -> io::Result<(T, Refused)> {
    let filter = compile(profile)?;
    let errno = i32::try_from(profile["defaultErrnoRet"].as_i64().expect("an error number")).expect("an error number");
    let refused = Refused::default();
    let listener = Arc::new(AtomicI32::new(PENDING));
    let (seen, given) = (refused.clone(), listener.clone());
    // It starts before the filter exists.
    thread::Builder::new().name("seccomp".to_owned()).spawn(move || {
        if let Some(listener) = await_listener(&given) {
            refuse_all(&listener, errno, &seen);
        }
    })?;
    let outcome = thread::scope(|scope| {
        let running = scope.spawn(|| {
            let installed = install(&filter);
            // No system call may be between the two: it could be one that nobody would refuse yet.
            listener.store(*installed.as_ref().unwrap_or(&FAILED), Ordering::Release);
            installed.map(|_| run())
        });
        running.join().unwrap_or_else(|_| panic!("a thread failed; refused: {}", refused.calls().join(", ")))
    });
    Ok((outcome?, refused))
}

/// Values in place of a descriptor.
const PENDING: i32 = -1;
const FAILED: i32 = -2;

/// Waits until another thread has installed its filter. Takes the descriptor that reports calls.
fn await_listener(given: &AtomicI32) -> Option<OwnedFd> {
    loop {
        match given.load(Ordering::Acquire) {
            PENDING => thread::yield_now(),
            FAILED => return None,
            // SAFETY: the kernel has created the descriptor for this process, and nothing else has it.
            descriptor => return Some(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        }
    }
}

/// Makes a system call with this argument and zeros. Returns the error number, or 0.
pub(crate) fn try_call(name: &str, argument: i64) -> i32 {
    let number = i64::from(number_of(name).expect("a known call"));
    // SAFETY: the callers use calls for which zeros are no addresses to write to.
    let outcome = unsafe { libc::syscall(number, argument, 0, 0, 0, 0, 0) };
    let error = io::Error::last_os_error().raw_os_error().unwrap_or_default();
    match outcome {
        -1 => error,
        // The child of a fork that should have been refused.
        // SAFETY: the call does not return.
        0 if name == "clone" => unsafe { libc::_exit(1) },
        _ => 0,
    }
}

/// Returns the filter of a profile, with a report in place of the default action.
///
/// # Errors
/// Fails on an architecture that the profile does not list.
fn compile(profile: &Value) -> io::Result<Vec<sock_filter>> {
    let architecture = ARCHITECTURE.ok_or_else(|| io::Error::other("the profile does not list this architecture"))?;
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    let mut names = profile["syscalls"].as_array().expect("rules").iter().flat_map(|rule| rule["names"].as_array());
    assert!(names.any(|names| names.contains(&"exit".into())), "no thread could end: allow `exit`");
    let load = |offset| statement(BPF_LD | BPF_W | BPF_ABS, offset);
    let give = |action| statement(BPF_RET | BPF_K, action);
    // Calls of another architecture have other numbers.
    let is_own = statement_with(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0);
    let mut filter = vec![load(ARCH), is_own, give(libc::SECCOMP_RET_KILL_PROCESS), load(NUMBER)];
    for rule in profile["syscalls"].as_array().expect("rules") {
        let action = match rule["action"].as_str() {
            Some("SCMP_ACT_ALLOW") => libc::SECCOMP_RET_ALLOW,
            Some("SCMP_ACT_ERRNO") => libc::SECCOMP_RET_ERRNO | number(&rule["errnoRet"]),
            other => panic!("unknown action {other:?}"),
        };
        let arguments = rule["args"].as_array().map_or(&[][..], Vec::as_slice);
        for name in rule["names"].as_array().expect("names") {
            let name = name.as_str().expect("a name");
            let Some(call) = number_of(name) else { continue };
            let mut checks: Vec<sock_filter> = Vec::new();
            for argument in arguments {
                let (mask, value) = match argument["op"].as_str() {
                    Some("SCMP_CMP_EQ") => (u64::MAX, argument["value"].as_u64()),
                    Some("SCMP_CMP_MASKED_EQ") => {
                        (argument["value"].as_u64().expect("a mask"), argument["valueTwo"].as_u64())
                    }
                    other => panic!("unknown comparison {other:?}"),
                };
                let (value, at) = (value.expect("a value"), ARGUMENTS + 8 * number(&argument["index"]));
                for (shift, offset) in [(0, at), (32, at + 4)] {
                    let half = |bits: u64| u32::try_from(bits >> shift & u64::from(u32::MAX)).expect("32 bits");
                    checks.push(load(offset));
                    checks.push(statement(BPF_ALU | BPF_AND | BPF_K, half(mask)));
                    checks.push(unless(half(value), 0));
                }
            }
            // Each comparison that fails jumps past the action.
            let length = checks.len();
            for (index, check) in checks.iter_mut().enumerate() {
                if check.code == code(BPF_JMP | BPF_JEQ | BPF_K) {
                    check.jf = u8::try_from(length - index).expect("a short rule");
                }
            }
            filter.push(unless(call, u8::try_from(length + 1).expect("a short rule")));
            filter.extend(checks);
            filter.extend([give(action), load(NUMBER)]);
        }
    }
    filter.push(give(libc::SECCOMP_RET_USER_NOTIF));
    Ok(filter)
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().expect("a number")).expect("a small number")
}

fn code(code: u32) -> u16 {
    u16::try_from(code).expect("a code of 16 bits")
}

fn statement(operation: u32, operand: u32) -> sock_filter {
    statement_with(operation, operand, 0, 0)
}

/// Jump over `skipped` instructions unless the loaded value is `operand`.
fn unless(operand: u32, skipped: u8) -> sock_filter {
    statement_with(BPF_JMP | BPF_JEQ | BPF_K, operand, 0, skipped)
}

fn statement_with(operation: u32, operand: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: code(operation), jt: if_true, jf: if_false, k: operand }
}

/// Puts this thread and what it starts under a filter. Returns the descriptor that reports calls.
fn install(filter: &[sock_filter]) -> io::Result<i32> {
    let length = u16::try_from(filter.len()).expect("a filter below the kernel's limit");
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the call takes numbers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: the kernel copies `program` and the instructions, which live until the call returns.
    let descriptor = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::try_from(descriptor).expect("a descriptor"))
}

/// Refuses all calls that a filter reports, until no process is under it.
fn refuse_all(listener: &OwnedFd, errno: i32, refused: &Refused) {
    loop {
        let mut waiting = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `waiting` is one structure.
        let count = unsafe { libc::poll(&raw mut waiting, 1, -1) };
        if count > 0 && waiting.revents & libc::POLLIN == 0 {
            return;
        }
        // SAFETY: all fields are integers.
        let mut call: libc::seccomp_notif = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes one such structure.
        if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } != 0 {
            let error = io::Error::last_os_error();
            // The caller has ended, or a signal came.
            assert!(matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)), "{error}");
            continue;
        }
        let thread = std::fs::read_to_string(format!("/proc/{}/comm", call.pid)).unwrap_or_default();
        let program = std::fs::read_link(format!("/proc/{}/exe", call.pid));
        let (name, first) = (name_of(call.data.nr), call.data.args[0]);
        refused.add(Call {
            text: format!("{name}({first:#x}, …) by {}", thread.trim()),
            // A program that cannot be seen counts.
            is_own: program.map_or(true, |program| is_own(&program)),
        });
        let response = libc::seccomp_notif_resp { id: call.id, val: 0, error: -errno, flags: 0 };
        // SAFETY: the kernel reads one such structure. It fails if the caller has ended.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, ptr::from_ref(&response)) };
    }
}

/// Returns the number of a call on this architecture.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    let found = CALLS.iter().chain(OLD).find(|(known, _)| known.strip_prefix("SYS_") == Some(name));
    found.map(|(_, number)| u32::try_from(*number).expect("a number"))
}

fn name_of(number: i32) -> String {
    let found = CALLS.iter().chain(OLD).find(|(_, known)| *known == i64::from(number));
    found.map_or_else(|| format!("call {number}"), |(name, _)| name.trim_start_matches("SYS_").to_owned())
}

macro_rules! calls {
    ($($name:ident)*) => { [$((stringify!($name), libc::$name)),*] };
}

/// Calls that an architecture has only for old programs.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[(&str, i64)] = &calls![
    SYS__sysctl SYS_access SYS_afs_syscall SYS_alarm SYS_arch_prctl SYS_chmod SYS_chown SYS_creat SYS_dup2
    SYS_epoll_create SYS_epoll_ctl_old SYS_epoll_wait SYS_epoll_wait_old SYS_eventfd SYS_fork
    SYS_futimesat SYS_get_thread_area SYS_getdents SYS_getpgrp SYS_getpmsg SYS_getrlimit SYS_inotify_init SYS_ioperm
    SYS_iopl SYS_lchown SYS_link SYS_lstat SYS_mkdir SYS_mknod SYS_modify_ldt SYS_open SYS_pause SYS_pipe SYS_poll
    SYS_putpmsg SYS_readlink SYS_rename SYS_rmdir SYS_security SYS_select SYS_set_thread_area
    SYS_setrlimit SYS_signalfd SYS_stat SYS_symlink SYS_sysfs SYS_time SYS_tuxcall SYS_unlink
    SYS_uselib SYS_ustat SYS_utime SYS_utimes SYS_vfork SYS_vserver
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[(&str, i64)] = &[];

/// Calls of all architectures.
#[rustfmt::skip]
const CALLS: &[(&str, i64)] = &calls![
    SYS_accept SYS_accept4 SYS_acct SYS_add_key SYS_adjtimex SYS_bind SYS_bpf SYS_brk SYS_capget SYS_capset
    SYS_chdir SYS_chroot SYS_clock_adjtime SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_clock_settime
    SYS_clone SYS_clone3 SYS_close SYS_close_range SYS_connect SYS_copy_file_range SYS_delete_module SYS_dup
    SYS_dup3 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2 SYS_execve SYS_execveat
    SYS_exit SYS_exit_group SYS_faccessat SYS_faccessat2 SYS_fadvise64 SYS_fallocate SYS_fanotify_init
    SYS_fanotify_mark SYS_fchdir SYS_fchmod SYS_fchmodat SYS_fchmodat2 SYS_fchown SYS_fchownat SYS_fcntl SYS_fdatasync
    SYS_fgetxattr SYS_finit_module SYS_flistxattr SYS_flock SYS_fremovexattr SYS_fsconfig SYS_fsetxattr SYS_fsmount
    SYS_fsopen SYS_fspick SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate SYS_futex SYS_futex_waitv SYS_get_mempolicy
    SYS_get_robust_list SYS_getcpu SYS_getcwd SYS_getdents64 SYS_getegid SYS_geteuid SYS_getgid SYS_getgroups
    SYS_getitimer SYS_getpeername SYS_getpgid SYS_getpid SYS_getppid SYS_getpriority SYS_getrandom SYS_getresgid
    SYS_getresuid SYS_getrusage SYS_getsid SYS_getsockname SYS_getsockopt SYS_gettid SYS_gettimeofday SYS_getuid
    SYS_getxattr SYS_init_module SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch SYS_io_cancel
    SYS_io_destroy SYS_io_getevents SYS_io_setup SYS_io_submit SYS_io_uring_enter SYS_io_uring_register
    SYS_io_uring_setup SYS_ioctl SYS_ioprio_get SYS_ioprio_set SYS_kcmp SYS_kexec_file_load SYS_kexec_load
    SYS_keyctl SYS_kill SYS_landlock_add_rule SYS_landlock_create_ruleset SYS_landlock_restrict_self SYS_lgetxattr
    SYS_linkat SYS_listen SYS_listxattr SYS_llistxattr SYS_lookup_dcookie SYS_lremovexattr SYS_lseek SYS_lsetxattr
    SYS_madvise SYS_mbind SYS_membarrier SYS_memfd_create SYS_memfd_secret SYS_migrate_pages SYS_mincore SYS_mkdirat
    SYS_mknodat SYS_mlock SYS_mlock2 SYS_mlockall SYS_mmap SYS_mount SYS_mount_setattr SYS_move_mount SYS_move_pages
    SYS_mprotect SYS_mq_getsetattr SYS_mq_notify SYS_mq_open SYS_mq_timedreceive SYS_mq_timedsend SYS_mq_unlink
    SYS_mremap SYS_mseal SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_msync SYS_munlock SYS_munlockall SYS_munmap
    SYS_name_to_handle_at SYS_nanosleep SYS_newfstatat SYS_nfsservctl SYS_open_by_handle_at SYS_open_tree SYS_openat
    SYS_openat2 SYS_perf_event_open SYS_personality SYS_pidfd_getfd SYS_pidfd_open SYS_pidfd_send_signal SYS_pipe2
    SYS_pivot_root SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_ppoll SYS_prctl SYS_pread64 SYS_preadv
    SYS_preadv2 SYS_prlimit64 SYS_process_madvise SYS_process_mrelease SYS_process_vm_readv SYS_process_vm_writev
    SYS_pselect6 SYS_ptrace SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_quotactl SYS_quotactl_fd SYS_read
    SYS_readahead SYS_readlinkat SYS_readv SYS_reboot SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_remap_file_pages
    SYS_removexattr SYS_renameat SYS_renameat2 SYS_request_key SYS_restart_syscall SYS_rseq SYS_rt_sigaction
    SYS_rt_sigpending SYS_rt_sigprocmask SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait
    SYS_rt_tgsigqueueinfo SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_getaffinity
    SYS_sched_getattr SYS_sched_getparam SYS_sched_getscheduler SYS_sched_rr_get_interval SYS_sched_setaffinity
    SYS_sched_setattr SYS_sched_setparam SYS_sched_setscheduler SYS_sched_yield SYS_seccomp SYS_semctl SYS_semget
    SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_set_mempolicy
    SYS_set_mempolicy_home_node SYS_set_robust_list SYS_set_tid_address SYS_setdomainname SYS_setfsgid SYS_setfsuid
    SYS_setgid SYS_setgroups SYS_sethostname SYS_setitimer SYS_setns SYS_setpgid SYS_setpriority SYS_setregid
    SYS_setresgid SYS_setresuid SYS_setreuid SYS_setsid SYS_setsockopt SYS_settimeofday SYS_setuid SYS_setxattr
    SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget SYS_shutdown SYS_sigaltstack SYS_signalfd4 SYS_socket SYS_socketpair
    SYS_splice SYS_statfs SYS_statx SYS_swapoff SYS_swapon SYS_symlinkat SYS_sync SYS_sync_file_range SYS_syncfs
    SYS_sysinfo SYS_syslog
    SYS_tee SYS_tgkill SYS_timer_create SYS_timer_delete SYS_timer_getoverrun SYS_timer_gettime SYS_timer_settime
    SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime SYS_times SYS_tkill SYS_truncate SYS_umask
    SYS_umount2 SYS_uname SYS_unlinkat SYS_unshare SYS_userfaultfd SYS_utimensat SYS_vhangup SYS_vmsplice SYS_wait4
    SYS_waitid SYS_write SYS_writev
];
