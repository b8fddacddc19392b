use std::{
    future::poll_fn,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::{LONGEST, answer, poll_receive, prepare};
use crate::datagram::ancillary;

fn everywhere() -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    let address: SocketAddr = (Ipv4Addr::UNSPECIFIED, 0).into();
    prepare(&socket, address).unwrap();
    socket.bind(&address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    UdpSocket::from_std(socket.into()).unwrap()
}

#[tokio::test]
async fn an_answer_comes_from_the_address_that_was_asked_whatever_the_size() {
    let server = everywhere();
    let bound = server.local_addr().unwrap();
    let port = bound.port();
    for (asked, size) in [([127, 0, 0, 2], 1), ([127, 0, 0, 3], 65_507), ([127, 0, 0, 1], 0)] {
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        client.connect((Ipv4Addr::from(asked), port)).await.unwrap();
        let sent = vec![7; size];
        client.send(&sent).await.unwrap();
        let mut buffer = vec![0; LONGEST];
        let (length, sender) = poll_fn(|context| poll_receive(&server, bound, context, &mut buffer))
            .await
            .unwrap();
        assert_eq!(sender.client, client.local_addr().unwrap());
        assert_eq!(sender.local.map(|local| local.address), Some(IpAddr::from(asked)));
        let control = ancillary::write(sender.local.unwrap());
        answer(&server, sender, &control, &buffer[..length]).unwrap();
        // A connected client hears only the address that it asked.
        let mut heard = vec![0; LONGEST];
        let length = tokio::time::timeout(Duration::from_secs(10), client.recv(&mut heard))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(heard[..length], sent);
    }
}
