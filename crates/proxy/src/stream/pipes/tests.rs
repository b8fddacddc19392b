use std::{future::poll_fn, io};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{MOST_KEPT, MOST_PIPES, Moved, Pipes};

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}

#[tokio::test]
async fn bytes_go_through_a_pipe_from_one_connection_to_another_up_to_the_end() -> io::Result<()> {
    let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
    let pipes = Pipes::default();
    let mut lease = pipes.take().unwrap();
    sender.write_all(b"hello").await?;
    sender.shutdown().await?;
    let mut arrived = Vec::new();
    loop {
        match poll_fn(|context| lease.poll_fill(context, &from)).await? {
            Moved::Bytes(0) => break,
            Moved::Bytes(_) => {}
            Moved::Unsupported => panic!("this kernel moves bytes through pipes"),
        }
        while !lease.is_empty() {
            poll_fn(|context| lease.poll_empty(context, &to)).await?;
        }
    }
    drop(to);
    receiver.read_to_end(&mut arrived).await?;
    assert_eq!(arrived, b"hello");
    Ok(())
}

#[test]
fn there_are_so_many_pipes_and_a_lost_one_makes_room_for_another() {
    let pipes = Pipes::default();
    let mut leases: Vec<_> = std::iter::from_fn(|| pipes.take()).collect();
    assert_eq!(leases.len(), MOST_PIPES);
    drop(leases.pop());
    assert!(pipes.take().is_some());
    for lease in &leases {
        pipes.give(lease);
    }
    drop(leases);
    assert_eq!(pipes.kept.borrow().len(), MOST_KEPT);
    assert_eq!(pipes.taken.get(), 0);
    // Whoever finds that the kernel does not do it, finds it for all.
    pipes.give_up();
    assert!(pipes.take().is_none());
}
