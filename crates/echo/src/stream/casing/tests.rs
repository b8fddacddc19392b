//! Names are restored at line starts only, and only once.

use tokio::io::AsyncWriteExt;

use super::*;

async fn written(names: &[&str], parts: &[&str]) -> String {
    let casing = Arc::new(HeaderCasing::default());
    casing.restore(names.iter().map(|name| (*name).to_owned()).collect());
    let mut stream = CasingStream::new(io::Cursor::new(Vec::new()), casing);
    for part in parts {
        stream.write_all(part.as_bytes()).await.unwrap();
    }
    String::from_utf8(stream.stream.into_inner()).unwrap()
}

#[tokio::test]
async fn names_at_line_starts_are_restored_and_values_are_not() {
    assert_eq!(
        written(
            &["x-oDD"],
            &["HTTP/1.1 200 OK\r\nX-Odd: x-odd: X-Odd:\r\nX-Odd-Too: 1\r\n\r\n"]
        )
        .await,
        "HTTP/1.1 200 OK\r\nx-oDD: x-odd: X-Odd:\r\nX-Odd-Too: 1\r\n\r\n"
    );
}

#[tokio::test]
async fn only_the_next_head_is_rewritten() {
    let head = "HTTP/1.1 200 OK\r\nX-Odd: 1\r\n\r\n";
    assert_eq!(
        written(&["x-oDD"], &[head, head]).await,
        "HTTP/1.1 200 OK\r\nx-oDD: 1\r\n\r\nHTTP/1.1 200 OK\r\nX-Odd: 1\r\n\r\n"
    );
}
