//! What leads from an API server to the pods behind a Service, where there is no kube-proxy.
//!
//! The API server sends what is meant for the cluster through a proxy (its egress selector), over a socket in a folder. Here
//! that is a function: the address of a Service is looked up in a table and joined with a port of this machine.

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpStream, UnixListener, UnixStream},
    task::JoinHandle,
};

/// The longest head of a request that is read: a `CONNECT` has two lines.
const HEAD_MAX: usize = 4096;

/// Where each Service leads, by its address and port.
type Routes = Arc<Mutex<HashMap<String, SocketAddr>>>;

/// A network of Services. It ends when it is dropped.
pub(crate) struct Network {
    routes: Routes,
    accepting: JoinHandle<()>,
}

impl Network {
    /// Begins in a folder; what the API server has to be told about it is in the file that comes back.
    pub(crate) fn begin(folder: &Path) -> (Self, PathBuf) {
        let socket = folder.join("network.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let routes = Routes::default();
        let known = Arc::clone(&routes);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let routes = Arc::clone(&known);
                // One that breaks off is the caller's to notice.
                tokio::spawn(async move { join(stream, &routes).await.ok() });
            }
        });
        let config = folder.join("network.yaml");
        let text = format!(
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: cluster\n  \
             connection:\n    proxyProtocol: HTTPConnect\n    transport:\n      uds:\n        udsName: {}\n",
            socket.display()
        );
        std::fs::write(&config, text).unwrap();
        (Self { routes, accepting }, config)
    }

    /// From now on the Service at that address and port leads there.
    pub(crate) fn lead(&self, service: String, to: SocketAddr) {
        self.routes.lock().unwrap().insert(service, to);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Joins a caller with whom it asks for.
async fn join(mut caller: UnixStream, routes: &Routes) -> std::io::Result<()> {
    let head = head(&mut caller).await?;
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    let route = routes.lock().unwrap().get(target).copied();
    let Some(route) = route else {
        return caller.write_all(b"HTTP/1.1 503 no such Service\r\n\r\n").await;
    };
    let Ok(mut server) = TcpStream::connect(route).await else {
        return caller.write_all(b"HTTP/1.1 502 nobody listens\r\n\r\n").await;
    };
    caller.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut caller, &mut server).await.map(drop)
}

/// The head of a request, byte by byte: what follows it is not ours.
async fn head(caller: &mut UnixStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_MAX {
        head.push(caller.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
