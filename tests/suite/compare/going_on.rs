//! Comparisons that are stopped, killed, fail and share their work come to the report of one that went through.

use super::command::{COMPARED, arguments, results, write_configs};
use crate::reliability::campaign;
use crate::training::{Finished, assert_says, finish_on_full_disk, lookback, read, succeed};
use lookback::data::stream;
use lookback::report::comparison::{Comparison, words};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A comparison without what depends on the clock, the machine and the folder.
fn timeless(path: &Path) -> Comparison {
    let mut comparison = results(path);
    comparison.command.clear();
    comparison.costs.iter_mut().for_each(|cost| {
        (cost.seconds, cost.peak_bytes, cost.base_bytes, cost.load) = (None, None, None, None);
        (cost.interval, cost.visits) = (None, 0);
    });
    comparison.notes.clear();
    comparison.growth.clear();
    comparison.crossings.clear();
    comparison.differences.retain(|difference| difference.what != "seconds of training");
    comparison.same.retain(|same| same.what != "seconds of training");
    for contestant in &mut comparison.contestants {
        contestant.train_seconds.clear();
        contestant.runs.clear();
    }
    for curve in &mut comparison.curves {
        curve.train.iter_mut().chain(&mut curve.valid).for_each(|point| point.seconds = 0.0);
    }
    comparison
}

#[test]
fn the_same_command_again_finds_everything_finished_and_writes_the_same_bytes() {
    let dir = TempDir::new().unwrap();
    crate::training::copy_folder(COMPARED.path(), dir.path());
    let before = read(dir.path().join("out/results.json"));
    let stdout = succeed(dir.path(), &arguments(&["--out", "out"]));
    assert_eq!(read(dir.path().join("out/results.json")), before);
    let summary = words::summary(&results(&dir.path().join("out")));
    assert_eq!(stdout, format!("{summary}the report is out/report/index.html\n"));
}

#[cfg(unix)]
#[test]
fn a_comparison_that_is_stopped_and_continued_comes_to_the_same_report() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let mut child = lookback(dir.path(), &arguments(&["--out", "out"]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mark = dir.path().join("out/runs/rnn-seed5/config.toml");
    while !mark.is_file() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "interrupted");
    assert!(!dir.path().join("out/results.json").exists(), "nothing is reported before all is measured");
    succeed(dir.path(), &arguments(&["--out", "out"]));
    assert_eq!(timeless(&dir.path().join("out")), timeless(&COMPARED.path().join("out")));
}

/// Trials and trainings of 30 updates, without times.
fn tuned<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let configs = ["compare", "rnn.toml", "transformer.toml", "--max-cost-length", "0", "--per-length", "6"];
    [&configs[..], &["--tune", "2", "--set", "training.max_updates=30"], more].concat()
}

/// Four kills, ten times as many in a campaign; also in the middle of tuning, testing and writing.
#[test]
fn a_comparison_killed_at_random_moments_comes_to_the_same_report() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let command = |out| tuned(&["--set", "training.save_every=7", "--out", out]);
    let start = Instant::now();
    succeed(dir.path(), &command("whole"));
    let seconds = start.elapsed().as_secs_f64();
    let n_kills = 2 + 2 * campaign() as u64;
    let mut n_killed = 0;
    for i in 0..n_kills {
        let mut child =
            lookback(dir.path(), &command("killed")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Together about as long as it takes.
        let share = (seconds / n_kills as f64).max(0.05);
        std::thread::sleep(Duration::from_secs_f64(2.0 * share * stream(5, "kill", i).unit()));
        child.kill().unwrap();
        n_killed += usize::from(child.wait().unwrap().code().is_none());
    }
    assert!(n_killed > 0, "none of {n_kills} processes was killed before it had finished");
    succeed(dir.path(), &command("killed"));
    assert_eq!(timeless(&dir.path().join("killed")), timeless(&dir.path().join("whole")));
    println!("{n_killed} kills: the same report");
}

/// Compared on a disk that is full at each of many sizes: nothing half-written is taken for whole.
#[cfg(unix)]
#[test]
fn whichever_write_of_a_comparison_fails_it_comes_to_the_same_report() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    // Blocks of 512 bytes: from the first config beyond the optimizer, the numbers and the page to the largest picture.
    let sizes: Vec<u64> = if campaign() > 1 { (0..1000).step_by(12).collect() } else { vec![0, 30, 150] };
    let mut n_failed = 0;
    for size in sizes {
        let out = format!("full-{size}");
        let finished = finish_on_full_disk(dir.path(), size, &arguments(&["--out", &out]));
        if finished.code != Some(0) {
            n_failed += 1;
            assert_eq!(finished.code, Some(1), "{size}: {}", finished.stderr);
            assert_says(finished.fault(), &[&out, "File too large"]);
        }
        succeed(dir.path(), &arguments(&["--out", &out]));
        assert_eq!(timeless(&dir.path().join(&out)), timeless(&COMPARED.path().join("out")), "{size}");
        let [found, whole] = [dir.path().join(&out), COMPARED.path().join("out")].map(|out| names(&out));
        assert_eq!(found, whole, "{size}");
        std::fs::remove_dir_all(dir.path().join(&out)).unwrap();
    }
    println!("{n_failed} writes failed: the same report");
    assert!(n_failed >= 3, "only {n_failed} writes failed");
}

/// The files of a report.
#[cfg(unix)]
fn names(out: &Path) -> Vec<String> {
    let all = crate::reliability::files(&out.join("report")).into_iter();
    all.map(|path| path.strip_prefix(out).unwrap().to_string_lossy().into_owned()).collect()
}

/// Three at once, of which one is killed in the middle of a run: the others take that over.
#[test]
fn processes_share_the_work_of_one_comparison_and_come_to_the_same_report() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let command = |out| tuned(&["--seeds", "2", "--threads", "1", "--out", out]);
    succeed(dir.path(), &command("alone"));
    let start = |_| {
        let mut command = lookback(dir.path(), &command("shared"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut children: Vec<_> = (0..3).map(start).collect();
    // The first has something to do, and the others find it taken.
    let locks = dir.path().join("shared/locks");
    let begun = || std::fs::read_dir(&locks).map_or(0, |entries| entries.count());
    let start = Instant::now();
    while begun() < 2 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    children[0].kill().unwrap();
    children.remove(0).wait().unwrap();
    for child in children {
        let end = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert_says(&end.stdout, &["the report is shared/report/index.html"]);
    }
    assert_eq!(timeless(&dir.path().join("shared")), timeless(&dir.path().join("alone")));
}

/// The command starts the processes, hands on a signal, and measures times after them.
#[test]
#[cfg(unix)]
fn jobs_share_the_work_and_the_report_is_that_of_one() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    let command = |out, jobs| {
        let settings = ["--set", "training.max_updates=60", "--seeds", "2", "--threads", "2", "--jobs", jobs];
        arguments(&[&settings[..], &["--out", out]].concat())
    };
    succeed(dir.path(), &command("alone", "1"));
    let out = dir.path().join("shared");
    let mut first = lookback(dir.path(), &command("shared", "2"));
    let mut first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !out.join("runs").is_dir() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is trained");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").arg(first.id().to_string()).status().unwrap().success());
    let ended = Finished::from({
        first.wait().unwrap();
        first.wait_with_output().unwrap()
    });
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert!(!out.join("results.json").exists());
    succeed(dir.path(), &command("shared", "2"));
    // The processes had one thread each.
    let placeless = |path: &Path| {
        let mut comparison = timeless(path);
        comparison.same.retain(|same| same.what != "device");
        comparison
    };
    assert_eq!(placeless(&out), placeless(&dir.path().join("alone")));
    let costs = results(&out).costs;
    assert!(!costs.is_empty() && costs.iter().all(|cost| cost.seconds.is_some()), "{costs:?}");
    // Each run was trained by a process that was started for it, with one of the two threads; what is written down is the whole command.
    for run in std::fs::read_dir(out.join("runs")).unwrap() {
        let environment = read(run.unwrap().path().join("environment.json"));
        assert_says(&environment, &["--threads 2 --jobs 2 --out shared\"", "CPU, 1 thread\""]);
    }
}
