//! The example of filters, asked for all that its comments promise. `check` looks at all examples, `demo` at the quickstart.

use std::{collections::BTreeSet, fs, net::SocketAddr, path::Path};

use crate::{
    calls::{ECHO, call},
    process::{Process, free_port, text, wait_for},
    web::{Backends, Echoes, ask},
    yaml::{FOLDER, folder},
};

#[test]
fn the_filters_do_what_their_comments_say() {
    let (backends, calls) = (Backends::start(), Echoes::start("grpc", &["calls"]));
    let port = free_port();
    let ports = [
        (8080, port),
        (9081, backends.blue),
        (9082, backends.green),
        (9083, calls.ports()[0]),
    ];
    let parent = folder(&[]);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/filters");
    for entry in fs::read_dir(example).unwrap() {
        let entry = entry.unwrap();
        let mut file = fs::read_to_string(entry.path()).unwrap();
        for (declared, free) in ports {
            file = file.replace(&format!("port: {declared}"), &format!("port: {free}"));
        }
        fs::write(parent.path().join(FOLDER).join(entry.file_name()), file).unwrap();
    }
    let _process = Process::serve(parent.path(), FOLDER);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let send = |line: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> = [("host", "a.test")].iter().chain(headers).copied().collect();
        ask(address, line, &headers, "")
    };

    assert_eq!(send("GET /mirrored", &[]).service(), "blue");
    let origin = ("origin", "https://page.example.com");
    let shared = send("GET /shared", &[origin]);
    assert_eq!(
        (shared.status, shared.header("access-control-allow-origin")),
        (200, Some(origin.1))
    );
    let preflight = send("OPTIONS /shared", &[origin, ("access-control-request-method", "PUT")]);
    assert_eq!(
        (preflight.status, preflight.header("access-control-max-age")),
        (204, Some("600"))
    );
    assert_eq!(
        send("GET /retry/x?uuid=example&succeedAfter=2&responseCode=503", &[]).status,
        200
    );

    let kept = send("GET /kept", &[]);
    let set = kept.header("set-cookie").unwrap();
    assert!(set.starts_with("seat=") && set.contains("; max-age=3600;"), "{set}");
    let cookie = set.split(';').next().unwrap();
    for _ in 0..8 {
        assert_eq!(send("GET /kept", &[("cookie", cookie)]).service(), kept.service());
    }
    let guarded = send("GET /guarded", &[("x-user", "root")]);
    assert_eq!(
        (guarded.service().as_str(), guarded.echoed_header("x-user")),
        ("blue", Vec::new())
    );
    wait_for("the question", || backends.has_seen("/check/guarded").then_some(()));

    let seen = (0..32).map(|_| {
        let response = send("GET /any", &[]);
        (response.service(), text(&response.echoed(), "path").to_owned())
    });
    let pair = |service: &str, path: &str| (service.to_owned(), path.to_owned());
    let expected = BTreeSet::from([pair("blue", "/any"), pair("green", "/green")]);
    assert_eq!(seen.collect::<BTreeSet<_>>(), expected);

    let reply = call(address, &format!("/{ECHO}/Echo"), &[]);
    assert_eq!((reply.status(), reply.service().as_str()), ("0", "calls"));
    assert_eq!(reply.echoed_header("x-from"), ["gateway"]);
}
