//! The C API as C sees it: the header in both languages, the exported symbols, and programs that
//! use them.
//!
//! The tests need gcc, g++, nm and readelf. The last ones also need the `trib` binary beside the
//! library, for fabrics of their own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[test]
fn the_header_and_the_programs_compile_without_a_warning_as_c_and_as_cpp() {
    for (compiler, standard) in [("gcc", "-std=c99"), ("g++", "-std=c++11")] {
        let language = if compiler == "gcc" { "c" } else { "c++" };
        for source in ["alone.c", "bad_rank.c", "beside.c", "collectives.c", "unload.c"] {
            let mut command = Command::new(compiler);
            command.args([standard, "-D_GNU_SOURCE", "-x", language, "-fsyntax-only"]).args(WARNINGS);
            run(command.arg("-I").arg(include_folder()).arg(program_source(source)));
        }
    }
}

#[test]
fn exactly_the_functions_of_the_header_are_exported() {
    let header = std::fs::read_to_string(include_folder().join("tributary.h")).unwrap();
    let declared: BTreeSet<String> = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '#']) && !line.starts_with("typedef"))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next().map(str::to_owned))
        .filter(|name| name.starts_with("trib_"))
        .collect();
    assert!(declared.len() > 25, "{declared:?}");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let exported: BTreeSet<String> =
        symbols.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
    assert_eq!(exported, declared);
}

#[test]
fn the_shared_object_is_named_after_its_major_version() {
    let dynamic = run(Command::new("readelf").arg("-d").arg(library()));
    assert!(dynamic.contains("[libtributary.so.0]"), "{dynamic}");
}

#[test]
fn without_a_fabric_everything_fails_with_words() {
    let program = build("alone.c", Linked::Yes);
    run(&mut program_command(&program));
}

#[test]
fn one_bad_rank_fails_all_with_its_number_and_reason() {
    let program = build("bad_rank.c", Linked::Yes);
    run(&mut program_command(&program));
}

#[test]
fn the_library_can_be_unloaded_and_has_logged_what_the_environment_asks_for() {
    const THREADS: usize = 8;
    let program = build("unload.c", Linked::No);
    let logged = |level: &str| {
        let mut command = program_command(&program);
        let output = command.arg(library()).env("TRIB_LOG", level).env("TRIB_HOST", "h0").output().unwrap();
        assert!(output.status.success(), "{level}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(logged(""), "");
    // Threads that come at the same moment do not meet alike in every run.
    for _ in 0..30 {
        assert_eq!(logged("warn"), "");
    }
    let line = "[5] tributary info: this rank has joined no job cause=rank 5 does not exist in a job of 2";
    for (level, warnings) in [("info", 0), ("nonsense", 1)] {
        let lines = logged(level);
        assert!(lines.lines().all(|line| line.starts_with("h0:")), "{lines}");
        assert_eq!(lines.lines().filter(|found| found.ends_with(line)).count(), THREADS, "{lines}");
        assert_eq!(lines.matches("[5] tributary warning: TRIB_LOG: the log level").count(), warnings, "{lines}");
        assert_eq!(lines.lines().count(), THREADS + warnings, "{lines}");
    }
}

#[test]
fn every_collective_works_in_a_fabric() {
    let program = build("collectives.c", Linked::Yes);
    let fabric = Fabric::up("collectives", &[]);
    for ranks in ["1", "5"] {
        run(program_command(&program).arg(ranks).env("TRIB_MANAGER", &fabric.manager));
    }
    let lanes = "lanes=3,stripe_threshold=512";
    run(program_command(&program).arg("5").env("TRIB_MANAGER", &fabric.manager).env("TRIB_QUOTA", lanes));
}

#[test]
fn a_rank_whose_program_does_something_else_takes_no_processor_while_others_are_late() {
    let program = build("beside.c", Linked::Yes);
    let fabric = Fabric::up("beside", &["--shared-host"]);
    run(program_command(&program).env("TRIB_MANAGER", &fabric.manager));
}

/// A fabric on loopback, for this process only.
struct Fabric {
    name: String,
    manager: String,
}

impl Fabric {
    fn up(purpose: &str, options: &[&str]) -> Fabric {
        let name = format!("capi-{purpose}-{}", std::process::id());
        let lines = run(trib().args(["fabric", "up", "--local", "--name", &name]).args(options));
        let manager = lines.trim().strip_prefix("export TRIB_MANAGER=").expect("one line to eval");
        Fabric { name, manager: manager.trim_matches('\'').to_owned() }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let _ = trib().args(["fabric", "down", "--local", "--name", &self.name]).status();
    }
}

fn trib() -> Command {
    let trib = build_folder().join("trib");
    assert!(trib.exists(), "{} is not there: build the workspace first (make build)", trib.display());
    Command::new(trib)
}

/// Whether a program is linked with the library.
#[derive(PartialEq)]
enum Linked {
    Yes,
    No,
}

/// Compiles a program as a user would.
fn build(source: &str, linked: Linked) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.trim_end_matches(".c"));
    let mut command = Command::new("gcc");
    command.args(["-std=c99", "-D_GNU_SOURCE", "-O1"]).args(WARNINGS);
    command.arg("-I").arg(include_folder()).arg(program_source(source));
    if linked == Linked::Yes {
        command.arg(library());
    }
    run(command.args(["-ldl", "-lpthread", "-o"]).arg(&program));
    program
}

/// A command for a program that finds the library, for which the loader looks under its soname.
fn program_command(program: &Path) -> Command {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lib-{}", program.file_name().unwrap().display()));
    std::fs::create_dir_all(&folder).unwrap();
    let link = folder.join("libtributary.so.0");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(library(), &link).unwrap();
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder).env_remove("TRIB_MANAGER");
    command
}

/// Runs a command that must succeed and returns what it prints on stdout.
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

fn include_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

fn program_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn library() -> PathBuf {
    build_folder().join("libtributary.so")
}

/// Where cargo puts what it builds: two above this test.
fn build_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
