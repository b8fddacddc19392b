//! The thread that a cluster lives on: it enters the cluster's namespace, and everything it starts is there too.
//!
//! It starts the control plane, then the node and the load balancer, and does what it is told until it is told to end.
//! Its own namespace is why it is a thread of its own, with a runtime of its own.

use std::{
    fmt,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context;
use kube::Client;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use super::{
    balancer, client_config,
    control_plane::{self, ControlPlane},
    network::Network,
    node,
};
use crate::say;

/// Where the outcome of an order goes.
pub(super) type Reply = mpsc::Sender<anyhow::Result<()>>;

/// What the thread can be told.
pub(super) enum Order {
    StopApiServer(Reply),
    StartApiServer(Reply),
    FreezeApiServer(bool, Reply),
    End,
}

/// How far a start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The API server serves.
    ApiServer,
    /// The controllers work and the node takes pods.
    Node,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ApiServer => "etcd and kube-apiserver serve",
            Self::Node => "controllers and node are at work",
        })
    }
}

/// What the thread is to make.
pub(super) struct Life {
    pub(super) network: Network,
    pub(super) control_plane: control_plane::Settings,
    pub(super) node: node::Settings,
}

impl Life {
    /// Starts the thread.
    pub(super) fn begin(
        self,
        orders: UnboundedReceiver<Order>,
        stages: mpsc::Sender<anyhow::Result<Stage>>,
    ) -> anyhow::Result<JoinHandle<()>> {
        let thread = thread::Builder::new().name("cluster".to_owned());
        let thread = thread.spawn(move || {
            // Nobody waits for a stage any more if the start was given up.
            let report = stages.clone();
            if let Err(error) = self.live(orders, stages) {
                let _ = report.send(Err(error));
            }
        });
        thread.context("cannot start a thread")
    }

    fn live(self, orders: UnboundedReceiver<Order>, stages: mpsc::Sender<anyhow::Result<Stage>>) -> anyhow::Result<()> {
        self.network.enter()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.run(orders, stages))
    }

    async fn run(
        self,
        mut orders: UnboundedReceiver<Order>,
        stages: mpsc::Sender<anyhow::Result<Stage>>,
    ) -> anyhow::Result<()> {
        let client = Client::try_from(client_config(&self.control_plane.kubeconfig).await?)?;
        let subnet = self.network.subnet;
        let mut control_plane = ControlPlane::start(self.control_plane, &client).await?;
        let _ = stages.send(Ok(Stage::ApiServer));
        control_plane.start_controllers()?;
        let mut tasks = JoinSet::new();
        balancer::start(client.clone(), subnet, &mut tasks);
        node::start(client.clone(), self.node, &mut tasks).await?;
        control_plane.wait_for_controllers(&client).await?;
        let _ = stages.send(Ok(Stage::Node));
        drop(stages);
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut has_complained = false;
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    None | Some(Order::End) => return Ok(()),
                    Some(order) => obey(order, &mut control_plane, &client).await,
                },
                _ = ticks.tick() => {
                    control_plane.restart_controllers_if_ended()?;
                    if let Err(error) = control_plane.check() && !has_complained {
                        say(format_args!("cluster: {error:#}"));
                        has_complained = true;
                    }
                }
            }
        }
    }
}

async fn obey(order: Order, control_plane: &mut ControlPlane, client: &Client) {
    let (outcome, reply) = match order {
        Order::StopApiServer(reply) => {
            control_plane.stop_api_server();
            (Ok(()), reply)
        }
        Order::StartApiServer(reply) => (control_plane.start_api_server(client).await, reply),
        Order::FreezeApiServer(is_frozen, reply) => (control_plane.freeze_api_server(is_frozen), reply),
        Order::End => return,
    };
    // The one who asked may have gone.
    let _ = reply.send(outcome);
}
