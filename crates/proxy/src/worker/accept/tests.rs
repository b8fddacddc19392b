use std::sync::Arc;

use imbl::OrdMap;
use tokio::net::{TcpListener, TcpStream};

use super::{LocalBind, Worker, serve};
use crate::{
    forward::Table,
    worker::{Bind, BindAddress},
};

/// What a connection costs while it waits, beside its socket. Ten thousand of them should fit into a few dozen megabytes,
/// so whoever makes this grow should know why.
const MOST_BYTES: usize = 4096;

#[test]
fn a_connection_takes_little_memory() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let worker = Worker::new(Arc::default());
        let table = Table::compile(&[], OrdMap::new(), Arc::default(), OrdMap::new(), None);
        let bind = LocalBind::new(Bind::new(BindAddress::tcp(address), Arc::new(table)), &worker);
        let deadline = worker.deadline();
        let bound = bind.admit(deadline.nudge(), 1).unwrap();
        let connection = serve(worker, bound, deadline, stream, address);
        let size = size_of_val(&connection);
        assert!(size <= MOST_BYTES, "{size} bytes");
        assert!(size >= MOST_BYTES / 4, "{size} bytes: the limit can be lowered");
    });
}
