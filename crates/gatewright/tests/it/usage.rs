//! What a command says when it is called wrongly, or with nothing to talk to.

use std::path::Path;

use crate::process::{free_port, whole};

fn here(arguments: &[&str]) -> String {
    whole(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
}

#[test]
fn without_arguments_the_help_is_shown() {
    insta::assert_snapshot!(here(&[]));
}

#[test]
fn the_help_of_run_names_every_flag_and_default() {
    insta::assert_snapshot!(here(&["run", "--help"]));
}

#[test]
fn run_without_files_says_what_to_type_instead() {
    insta::assert_snapshot!(here(&["run"]));
}

#[test]
fn run_with_a_missing_folder_says_so() {
    insta::assert_snapshot!(here(&[
        "run",
        "--files",
        "no/such/folder",
        "--admin",
        "off",
        "--health-probe-bind-address",
        "off",
        "--metrics-bind-address",
        "off"
    ]));
}

#[test]
fn a_wrong_log_level_is_refused() {
    insta::assert_snapshot!(here(&["run", "--log-level", "gatewright=loud"]));
}

#[test]
fn check_with_a_missing_folder_is_a_wrong_call() {
    insta::assert_snapshot!(here(&["check", "no/such/folder"]));
}

#[test]
fn check_of_a_file_is_a_wrong_call() {
    insta::assert_snapshot!(here(&["check", "Cargo.toml"]));
}

#[test]
fn status_without_a_running_process_says_how_to_start_one() {
    let port = free_port();
    let output = here(&["status", "--admin", &format!("127.0.0.1:{port}")]);
    insta::assert_snapshot!(output.replace(&port.to_string(), "[port]"));
}

#[test]
fn status_of_a_kind_without_status_is_a_wrong_call() {
    insta::assert_snapshot!(here(&["status", "secret/demo"]));
}

#[test]
fn the_version_is_printed() {
    insta::assert_snapshot!(here(&["version"]));
}
