//! Datagrams: those of one client go to one endpoint for as long as it exists, and answers find their way back.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    net::UdpSocket,
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::Backends;

/// How long a client may be silent until it is forgotten.
const IDLE: Duration = Duration::from_secs(30);

/// No datagram is longer.
const LONGEST: usize = 65_536;

type Flows = Arc<Mutex<HashMap<SocketAddr, Flow>>>;

#[derive(Clone)]
struct Flow {
    backend: SocketAddr,
    socket: Arc<UdpSocket>,
}

/// Serves one address until it is aborted.
pub(super) async fn serve(address: SocketAddr, backends: watch::Receiver<Backends>) {
    let front = loop {
        match UdpSocket::bind(address).await {
            Ok(socket) => break Arc::new(socket),
            // The task that served the address before may not have let go of it yet.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    };
    let flows = Flows::default();
    // They end with this task, and let go of the address: the next Service that is given it must not wait for them.
    let mut answers = JoinSet::new();
    let mut buffer = vec![0; LONGEST];
    let mut turn = 0;
    loop {
        // An error is about an earlier datagram.
        let Ok((length, client)) = front.recv_from(&mut buffer).await else {
            continue;
        };
        let known = backends.borrow().clone();
        let flow = flows
            .lock()
            .get(&client)
            .filter(|flow| known.contains(&flow.backend))
            .cloned();
        let flow = if flow.is_some() {
            flow
        } else {
            turn += 1;
            while answers.try_join_next().is_some() {}
            let begun = begin(&flows, client, &known, turn).await;
            if let Some(flow) = begun.clone() {
                answers.spawn(answer(Arc::clone(&front), Arc::clone(&flows), client, flow));
            }
            begun
        };
        if let Some((flow, datagram)) = flow.zip(buffer.get(..length)) {
            let _ = flow.socket.send(datagram).await;
        }
    }
}

/// Chooses an endpoint for a client; none while nobody is ready.
async fn begin(flows: &Flows, client: SocketAddr, backends: &Backends, turn: usize) -> Option<Flow> {
    let backend = *backends.get(turn.checked_rem(backends.len())?)?;
    let socket = Arc::new(UdpSocket::bind(("0.0.0.0", 0)).await.ok()?);
    socket.connect(backend).await.ok()?;
    let flow = Flow { backend, socket };
    flows.lock().insert(client, flow.clone());
    Some(flow)
}

/// Sends back what an endpoint answers, until the flow is idle or another takes its place.
async fn answer(front: Arc<UdpSocket>, flows: Flows, client: SocketAddr, flow: Flow) {
    let mut buffer = vec![0; LONGEST];
    // An endpoint that refuses is an error here; the client sends again or gives up.
    while let Ok(Ok(length)) = timeout(IDLE, flow.socket.recv(&mut buffer)).await {
        if let Some(datagram) = buffer.get(..length) {
            let _ = front.send_to(datagram, client).await;
        }
    }
    let mut flows = flows.lock();
    if flows
        .get(&client)
        .is_some_and(|known| Arc::ptr_eq(&known.socket, &flow.socket))
    {
        flows.remove(&client);
    }
}
