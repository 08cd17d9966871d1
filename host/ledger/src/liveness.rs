//! Is another process of this machine provably dead?
//!
//! A wrong "dead" would let a sweep begin while requests of the old host are still on their way, so everything that is not proven is "may live",
//! which costs a lease period of waiting and nothing else. The proofs, from proc(5), kill(2), pid_namespaces(7) and time_namespaces(7):
//!
//! * The same boot id and the same pid and time namespaces: the pid is gone, or belongs to a process with another start time, or is a zombie. Whether
//!   a pid exists is asked with signal 0 and not of `/proc`, which `hidepid` can keep other users' processes out of.
//! * The same machine id and another boot id: the machine was booted since. The machine id is recorded outside of containers only, because images
//!   carry one to any number of machines.
//!
//! A container that is started anew gets another pid namespace, and usually another machine name. Its predecessor may still run as far as it
//! can see, so it waits for the lease period.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::lease::Holder;

/// The initial pid namespace, `PROC_PID_INIT_INO` of Linux' proc_ns.h: a process in it is not in a container.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What can be said of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is proven that it can do nothing any more.
    Dead,
    /// It lives, or nothing can be proven.
    Possible,
}

/// Describes the running process.
pub(crate) fn this_process(id: String) -> Holder {
    let namespace =
        |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}")).map(|link| link.to_string_lossy().into_owned()).unwrap_or_default();
    let pid_namespace = namespace("pid");
    let machine_id = if pid_namespace == INITIAL_PID_NAMESPACE { read("/etc/machine-id") } else { String::new() };
    // The two namespaces are compared together, and only if both are known.
    let time_namespace = namespace("time");
    let known = !pid_namespace.is_empty() && !time_namespace.is_empty();
    Holder {
        id,
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        machine_id,
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        namespaces: if known { format!("{pid_namespace} {time_namespace}") } else { String::new() },
        pid: std::process::id(),
        process_start_ticks: stat("self").map_or(0, |stat| stat.start_ticks),
    }
}

/// What `candidate`, a description of the running process, can say of another holder.
pub(crate) fn of(holder: &Holder, candidate: &Holder) -> Life {
    let same = |theirs: &str, ours: &str| !theirs.is_empty() && theirs == ours;
    if holder.boot_id.is_empty() || candidate.boot_id.is_empty() {
        return Life::Possible;
    }
    if holder.boot_id != candidate.boot_id {
        return if same(&holder.machine_id, &candidate.machine_id) { Life::Dead } else { Life::Possible };
    }
    if !same(&holder.namespaces, &candidate.namespaces) {
        return Life::Possible;
    }
    process(holder.pid, holder.process_start_ticks)
}

/// Looks for a process of this namespace.
fn process(pid: u32, start_ticks: u64) -> Life {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Life::Possible };
    if test_kill_process(raw) == Err(Errno::SRCH) {
        return Life::Dead;
    }
    // Gone between the two looks, or hidden: the next look tells which.
    let Some(stat) = stat(&pid.to_string()) else { return Life::Possible };
    let another = start_ticks != 0 && stat.start_ticks != start_ticks;
    if another || stat.ended { Life::Dead } else { Life::Possible }
}

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// A zombie whose last thread has ended, so that its files and sockets are closed. The first thread alone can be one while another
    /// still waits for the kernel to write.
    ended: bool,
    /// Field 22.
    start_ticks: u64,
}

fn stat(pid: &str) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is the program's name in parentheses, and may hold spaces and parentheses itself: the fields are counted from the last one.
fn parse(stat: &str) -> Option<Stat> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    Some(Stat { ended: matches!(state, "Z" | "X" | "x") && threads <= 1, start_ticks })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::process::{Command, Stdio};

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    fn ours() -> Holder {
        this_process("candidate".to_owned())
    }

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) Z (b c) S 1 7 7 0 -1 4194304 101 0 0 0 0 0 0 0 20 0 1 0 129227 3133440 412";
        assert_eq!(parse(line), Some(Stat { ended: false, start_ticks: 129_227 }));
        let dying = "7 (a) Z 1 7 7 0 -1 4194304 101 0 0 0 0 0 0 0 20 0 2 0 129227 3133440 412";
        assert!(!parse(dying).unwrap().ended, "another thread of it still runs");
        assert!(parse(&dying.replace(" 2 0 ", " 1 0 ")).unwrap().ended);
        assert_eq!(parse("7 (cat) Z 1"), None);
    }

    #[test]
    fn this_process_lives_and_a_zombie_and_a_reaped_process_do_not() {
        assert_eq!(of(&ours(), &ours()), Life::Possible);
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let holder = Holder { pid: child.id(), process_start_ticks: stat(&child.id().to_string()).unwrap().start_ticks, ..ours() };
        assert_eq!(of(&holder, &ours()), Life::Possible);
        child.kill().unwrap();
        let pid = Pid::from_child(&child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(stat(&child.id().to_string()).unwrap().ended, "it is a zombie until it is waited for");
        assert_eq!(of(&holder, &ours()), Life::Dead);
        child.wait().unwrap();
        assert_eq!(of(&holder, &ours()), Life::Dead);
    }

    #[test]
    fn a_pid_given_to_another_process_is_a_dead_holder() {
        let reused = Holder { process_start_ticks: ours().process_start_ticks + 1, ..ours() };
        assert_eq!(of(&reused, &ours()), Life::Dead);
    }

    #[test]
    fn nothing_is_concluded_from_another_namespace() {
        let elsewhere = Holder { namespaces: "pid:[1] time:[1]".to_owned(), pid: 4_000_000, ..ours() };
        assert_eq!(of(&elsewhere, &ours()), Life::Possible);
        let unknown = Holder { namespaces: String::new(), ..elsewhere };
        assert_eq!(of(&unknown, &Holder { namespaces: String::new(), ..ours() }), Life::Possible);
    }

    #[test]
    fn another_boot_proves_death_only_on_the_same_machine() {
        let before = Holder { boot_id: "an older boot".to_owned(), machine_id: "m".to_owned(), ..ours() };
        assert_eq!(of(&before, &Holder { machine_id: "m".to_owned(), ..ours() }), Life::Dead);
        assert_eq!(of(&before, &Holder { machine_id: "n".to_owned(), ..ours() }), Life::Possible);
        let container = Holder { machine_id: String::new(), ..before };
        assert_eq!(of(&container, &Holder { machine_id: String::new(), ..ours() }), Life::Possible);
    }
}
