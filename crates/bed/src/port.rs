//! A port of loopback that stays ours, also while no server listens on it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::OwnedFd,
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// A port that the system gave and gives to nobody else while this value lives.
///
/// The socket is bound and never listens. A server that sets `SO_REUSEADDR` (Go's and Rust's listeners do) may then
/// bind and listen, again and again; while none does, connections are refused at once, and no client's outgoing
/// connection can be given the port in between.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Elsewhere than on Linux a second bind is refused whatever the options: there the port is only likely to be free.
    _reservation: Option<OwnedFd>,
}

impl Port {
    /// A port that nobody has.
    pub fn reserve() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        let number = SocketAddrV4::try_from(getsockname(&socket)?)?.port();
        Ok(Self { number, _reservation: cfg!(target_os = "linux").then_some(socket) })
    }

    /// Which one it is.
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_reserved_port_refuses_connections_until_a_server_listens_and_again_afterwards() {
        let port = Port::reserve().unwrap();
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port.number()));
        for _ in 0..3 {
            assert_eq!(connect().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
            let server = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).unwrap();
            connect().unwrap();
            drop(server);
        }
    }
}
