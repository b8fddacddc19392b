//! `gatewright demo`: the quickstart, on ports that are free here.

use std::{fs, net::SocketAddr, path::Path};

use crate::{
    process::{Process, free_port, wait_for},
    web::{get, request},
    yaml::{FOLDER, folder},
};

#[test]
fn the_quickstart_answers_as_its_introduction_says() {
    let quickstart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart");
    let ports = [
        ("8080", free_port()),
        ("8443", free_port()),
        ("9081", free_port()),
        ("9082", free_port()),
    ];
    let parent = folder(&[]);
    for entry in fs::read_dir(quickstart).unwrap() {
        let entry = entry.unwrap();
        let mut text = fs::read_to_string(entry.path()).unwrap();
        for (declared, free) in &ports {
            text = text.replace(&format!("port: {declared}"), &format!("port: {free}"));
        }
        fs::write(parent.path().join(FOLDER).join(entry.file_name()), text).unwrap();
    }
    let off = [
        "--admin",
        "off",
        "--metrics-bind-address",
        "off",
        "--health-probe-bind-address",
        "off",
    ];
    let arguments: Vec<&str> = ["demo", "--files", FOLDER].into_iter().chain(off).collect();
    let mut process = Process::start(parent.path(), &arguments);
    wait_for("introduction", || {
        process.stdout().contains("Ctrl-C stops\n").then_some(())
    });

    let introduction = ports.iter().fold(process.stdout(), |text, (declared, free)| {
        text.replace(&free.to_string(), declared)
    });
    insta::assert_snapshot!(introduction);

    let traffic = SocketAddr::from(([127, 0, 0, 1], ports[0].1));
    assert_eq!(request(traffic, "GET /green/x", "localhost", "").service(), "green");
    assert!(["blue", "green"].contains(&get(traffic, "/hello").service().as_str()));
    let redirect = request(traffic, "GET /secure/x?y", "localhost:8080", "");
    assert_eq!(redirect.status, 301);
    let location = format!("location: https://localhost:{}/secure/x?y\r\n", ports[1].1);
    assert!(redirect.head.contains(&location), "{}", redirect.head);

    process.signal("INT");
    assert_eq!(process.end().code(), Some(0));
}
