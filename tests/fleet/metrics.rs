//! What controllers say of themselves over HTTP.

use berth_bed::Companion;
use berth_tests::waiting::in_time;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The metrics of one process at one moment.
#[derive(Debug)]
pub(crate) struct Metrics(String);

impl Metrics {
    /// Asks the address that the process announced.
    pub(crate) async fn of(companion: &Companion) -> Self {
        let (code, text) = get(companion, "/metrics").await;
        assert_eq!(code, 200, "{text}");
        Self(text)
    }

    /// The sum of a metric over all its series with these labels, as in `kind="Placement"`.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let series = self.0.lines().filter(|line| !line.starts_with('#'));
        let series = series.filter_map(|line| line.rsplit_once(' ')).filter(|(series, _)| {
            let own = series.split('{').next() == Some(name);
            own && labels.iter().all(|label| series.contains(label))
        });
        // Counts all, though some are written with a point.
        let count = |value: &str| value.parse::<f64>().ok().map(|value| value as u64);
        series.map(|(series, value)| count(value).unwrap_or_else(|| panic!("{series} {value}"))).sum()
    }

    /// Writes that were tried, whatever came of them.
    pub(crate) fn writes(&self) -> u64 {
        self.sum("berth_writes_total", &[])
    }

    pub(crate) fn leads(&self) -> bool {
        self.sum("berth_leads", &[]) > 0
    }
}

/// One request to the address that a process announced.
pub(crate) async fn get(companion: &Companion, path: &str) -> (u16, String) {
    let line = companion.announcement();
    let address =
        line.split_once("metrics http://").map(|(_, rest)| rest.split(['/', ' ', ',', ';']).next().unwrap());
    let address = address.unwrap_or_else(|| panic!("no address of metrics in {line:?}"));
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = in_time(path, exchange).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer in {answer:?}"));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_else(|| panic!("no code in {head:?}")), body.to_owned())
}
