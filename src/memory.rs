//! What the machine has, so that a request that it can never fulfil is refused before it begins.

use crate::error::{Error, Result};

/// Training keeps four numbers of 4 bytes for each parameter: itself, its gradient, and Adam's two moments.
const BYTES_OF_TRAINING: u64 = 16;
/// The least that a generated pair takes: two strings, and its place in the order of training.
const BYTES_OF_PAIR: u64 = 96;

/// The bytes of memory that this process may use at most, where the system tells: those of the machine, or of its container.
pub fn limit() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_status(&text, "MemTotal:"));
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let container = container.iter().filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok());
    container.chain(machine).min()
}

/// The bytes that this process has in use, where the system tells.
pub fn in_use() -> Option<u64> {
    of_this_process("VmRSS:")
}

/// A line of this process's status, in bytes; only Linux tells.
pub fn of_this_process(line: &str) -> Option<u64> {
    of_status(&std::fs::read_to_string("/proc/self/status").ok()?, line)
}

/// A size in a text like that of `/proc/PID/status`, in bytes.
pub fn of_status(text: &str, line: &str) -> Option<u64> {
    let rest = text.lines().find_map(|text| text.strip_prefix(line))?;
    let kibibytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

/// What is being read, up to what the machine can hold: a few kilobytes of gzip may unpack to anything.
pub struct Budget {
    used: u64,
    limit: Option<u64>,
}

impl Budget {
    /// All that there is.
    pub fn new() -> Self {
        Self { used: 0, limit: limit() }
    }

    /// Takes so many bytes off it.
    ///
    /// # Errors
    /// If there are no more; the message is of the file that is being read.
    pub fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.used += bytes as u64;
        check(self.used, self.limit).map_err(|need| format!("is too large to be read: up to here it takes {need}"))
    }
}

/// Refuses what takes more than there is.
fn check(bytes: u64, limit: Option<u64>) -> Result<(), String> {
    match limit {
        Some(limit) if bytes > limit => {
            let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
            Err(format!("at least {:.0} GiB of memory, and there are {:.1}", gib(bytes).ceil(), gib(limit)))
        }
        _ => Ok(()),
    }
}

/// Refuses a model of `n_parameters` that can never be trained here, in this process's memory or on a GPU.
///
/// # Errors
/// Says how much it takes.
pub fn check_training(n_parameters: u64, is_host: bool) -> Result<()> {
    // A GPU has memory of its own, but initial weights are drawn here.
    let bytes = if is_host { BYTES_OF_TRAINING } else { BYTES_OF_TRAINING / 4 };
    check(n_parameters.saturating_mul(bytes), limit()).map_err(|need| {
        Error::config("model", format!("has {n_parameters} parameters, whose training takes {need}; make it smaller"))
    })
}

/// Refuses to generate more pairs than fit; `key` is what asks for them.
///
/// # Errors
/// Names `key`.
pub fn check_pairs(key: &str, n: usize) -> Result<()> {
    check((n as u64).saturating_mul(BYTES_OF_PAIR), limit())
        .map_err(|need| Error::config(key, format!("is {n}, which takes {need}; ask for fewer pairs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_sizes() {
        assert_eq!(check(1 << 33, Some(1 << 33)), Ok(()));
        assert_eq!(check(u64::MAX, None), Ok(()));
        let fault = check((1 << 33) + 1, Some(1 << 33)).unwrap_err();
        assert_eq!(fault, "at least 9 GiB of memory, and there are 8.0");
        let mut budget = Budget { used: 0, limit: Some(10) };
        assert_eq!(budget.take(10), Ok(()));
        assert!(budget.take(1).unwrap_err().starts_with("is too large to be read"));
    }
}
