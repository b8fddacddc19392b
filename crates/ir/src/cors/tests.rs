use super::OriginPattern;

#[test]
fn a_pattern_means_hosts_below_it_with_its_scheme_and_port() {
    let pattern = OriginPattern::parse("https://*.Bar.com").unwrap();
    for origin in ["https://www.bar.com", "https://a.b.bar.com", "HTTPS://WWW.BAR.COM"] {
        assert!(pattern.matches(origin), "{origin}");
    }
    for origin in [
        "https://bar.com",
        "https://.bar.com",
        "http://www.bar.com",
        "https://www.bar.com:8443",
        "https://evil.com/.bar.com",
        "https://user@evil.bar.com",
        "https://wwwbar.com",
        "",
    ] {
        assert!(!pattern.matches(origin), "{origin}");
    }
    assert!(
        OriginPattern::parse("http://*.a.test:81")
            .unwrap()
            .matches("http://x.a.test:81")
    );
}

#[test]
fn what_is_no_origin_is_refused() {
    for text in [
        "",
        "bar.com",
        "https://",
        "https://*bar.com",
        "https://a.*.com",
        "https://*.*.com",
    ] {
        assert_eq!(OriginPattern::parse(text), None, "{text}");
    }
    assert_eq!(OriginPattern::parse("*"), Some(OriginPattern::Any));
    assert!(OriginPattern::parse("https://*").unwrap().matches("https://any.test"));
    assert!(!OriginPattern::parse("https://*").unwrap().matches("http://any.test"));
    assert!(
        OriginPattern::parse("http://*:81")
            .unwrap()
            .matches("http://any.test:81")
    );
    assert!(
        OriginPattern::parse("https://foo.com:443")
            .unwrap()
            .matches("https://foo.com")
    );
    assert!(
        OriginPattern::parse("https://Foo.com")
            .unwrap()
            .matches("https://foo.com")
    );
}
