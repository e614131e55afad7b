//! `slotwright operator`: runs the operator on the cluster that the kubeconfig names, or that its pod runs in.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use http::Uri;
use kube::Config;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::daemon::{self, Unable};
use super::logging::LogFormat;
use controller::archive::{self, Credentials, Elastic, Limits, Token};
use controller::creators::Stamps;
use controller::seal::{Key, Seals};

/// Run the operator on the cluster that the kubeconfig names, or that its pod runs in.
#[derive(Args, Debug)]
// The arguments of a Deployment go before those that people add to it, and the last one counts.
#[command(args_override_self = true)]
pub struct OperatorArgs {
    /// The address that serves /livez and /readyz. [::] means all addresses, IPv4 and IPv6.
    #[arg(long, default_value = "[::]:8081")]
    health_addr: SocketAddr,
    /// The address that serves /metrics.
    #[arg(long, default_value = "[::]:8080")]
    metrics_addr: SocketAddr,
    /// The namespace of the leader election's Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "slotwright-system")]
    leader_elect_namespace: String,
    /// Lead at once, without an election. Use this only where no other operator can run.
    #[arg(long)]
    no_leader_elect: bool,
    /// The port of the admission webhook, at all addresses. Without this option there is no webhook.
    #[arg(long, value_name = "PORT")]
    webhook_port: Option<u16>,
    /// The namespace of the webhook's Service and Secret [default: that of the Lease].
    #[arg(long, value_name = "NAMESPACE", requires = "webhook_port")]
    webhook_namespace: Option<String>,
    /// The Service by which the API server reaches the webhook: the certificate is for its name.
    #[arg(long, value_name = "NAME", default_value = "slotwright-webhook", requires = "webhook_port")]
    webhook_service: String,
    /// The Secret that keeps the key of the webhook's seals, and the certificate if the operator makes one, for all replicas.
    #[arg(long, value_name = "NAME", default_value = "slotwright-webhook-cert", requires = "webhook_port")]
    webhook_secret: String,
    /// The name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration into which the certificate's
    /// authority is written.
    #[arg(long, value_name = "NAME", default_value = "slotwright", requires = "webhook_port")]
    webhook_configuration: String,
    /// A directory with the webhook's certificate, in the files tls.crt and tls.key, which others write and renew, such as
    /// cert-manager. The operator then makes no certificate, and writes into no configuration.
    #[arg(
        long,
        value_name = "DIRECTORY",
        requires = "webhook_port",
        conflicts_with = "webhook_configuration"
    )]
    webhook_certificate_dir: Option<PathBuf>,
    /// The name of the MutatingAdmissionPolicy, the ValidatingAdmissionPolicy and their bindings by which the API server stamps
    /// into a job who creates it. Without this option no stamp is believed.
    #[arg(long, value_name = "NAME")]
    owner_policy: Option<String>,
    #[command(flatten)]
    history: HistoryArgs,
    /// This operator's name in the Lease and in events [default: the host's name]. Two operators may have the same name.
    #[arg(long, env = "POD_NAME")]
    identity: Option<String>,
    /// The uid of this operator's pod. An operator that starts again in the same pod takes its Leases back at once. Without this option, it
    /// waits until they expire.
    #[arg(long, env = "POD_UID", value_name = "UID")]
    pod_uid: Option<String>,
    /// The form of the log: lines for people, or one JSON object a line.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub log_format: LogFormat,
}

/// The options of the history of jobs.
#[derive(Args, Debug)]
struct HistoryArgs {
    /// A directory for the history of jobs, which condor_history reads. Without this option there is no history.
    #[arg(long, value_name = "DIRECTORY")]
    history_dir: Option<PathBuf>,
    /// How many bytes a file of the history has before it is rotated: HTCondor's MAX_HISTORY_LOG.
    #[arg(long, value_name = "BYTES", default_value_t = 20 << 20, requires = "history_dir")]
    max_history_log: u64,
    /// How many rotated files are kept: HTCondor's MAX_HISTORY_ROTATIONS.
    #[arg(long, value_name = "N", default_value_t = 2, requires = "history_dir",
        value_parser = clap::value_parser!(u16).range(1..))]
    max_history_rotations: u16,
    /// The address at which the operator answers condor_history. Without this option, the operator does not answer.
    #[arg(long, value_name = "ADDRESS", requires = "history_dir")]
    history_addr: Option<SocketAddr>,
    /// A file with a token that readers of the history have to show. Without this option, whoever reaches the address may read.
    #[arg(long, value_name = "FILE", requires = "history_addr")]
    history_token_file: Option<PathBuf>,
    /// The Secret in the operator's namespace that has the token, by the key `token`, for condor_history to read.
    #[arg(
        long,
        value_name = "NAME",
        requires = "history_token_file",
        default_value = "slotwright-history-token"
    )]
    history_token_secret: String,
    /// An Elasticsearch or OpenSearch that gets each final ad as a document, such as https://elastic.example.org:9200.
    #[arg(long, value_name = "URL", requires = "history_dir")]
    adstash_url: Option<Uri>,
    /// The index of the documents.
    #[arg(long, value_name = "NAME", default_value = "htcondor-000001", requires = "adstash_url")]
    adstash_index: String,
    /// A file with the value of the header Authorization, such as "ApiKey VnVhQ2Zh...".
    #[arg(long, value_name = "FILE", requires = "adstash_url")]
    adstash_authorization_file: Option<PathBuf>,
    /// A file with certificates of authorities, by which the certificate of Elasticsearch is verified.
    #[arg(long, value_name = "FILE", requires = "adstash_url")]
    adstash_ca_file: Option<PathBuf>,
}

impl HistoryArgs {
    /// The options of the archive; `None` without a directory.
    fn options(self) -> Option<Box<archive::Options>> {
        let credentials =
            self.adstash_authorization_file.map_or(Credentials::None, Credentials::Authorization);
        let (index, authority) = (self.adstash_index, self.adstash_ca_file);
        let elastic = self.adstash_url.map(|url| Elastic { url, index, credentials, authority });
        let secret = self.history_token_secret;
        let token = self.history_token_file.map(|file| Token { file, secret });
        Some(Box::new(archive::Options {
            directory: self.history_dir?,
            limits: Limits { max_log: self.max_history_log, rotations: self.max_history_rotations.into() },
            serve: self.history_addr.map(|addr| (addr, token)),
            elastic,
        }))
    }
}

/// Why the operator did not run, or ended by itself.
#[derive(Debug, Error)]
pub enum Error {
    /// The operator cannot begin.
    #[error(transparent)]
    Start(#[from] Unable),
    /// The operator ended by itself.
    #[error(transparent)]
    Operator(#[from] controller::Error),
    /// The admission webhook ended.
    #[error("the admission webhook cannot be served: {0}")]
    Webhook(#[source] std::io::Error),
}

/// The name of an operator that was given none.
fn own_name() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| "slotwright".to_owned())
}

/// Runs the operator until SIGTERM or SIGINT.
///
/// # Errors
/// When no cluster can be found, or the operator ends by itself.
pub async fn run(args: OperatorArgs) -> Result<ExitCode, Error> {
    let config = daemon::cluster().await?;
    let webhook = webhook_options(&args);
    let has_webhook = webhook.is_some();
    let (serves, webhook_serves) = watch::channel(false);
    let stamps = Stamps::by(args.owner_policy);
    let identity = args.identity.unwrap_or_else(own_name);
    let options = controller::Options {
        health_addr: Some(args.health_addr),
        metrics_addr: Some(args.metrics_addr),
        leader_elect_namespace: (!args.no_leader_elect).then_some(args.leader_elect_namespace),
        history: args.history.options(),
        webhook_serves: has_webhook.then_some(webhook_serves),
        identity,
        pod_uid: args.pod_uid,
    };
    let stop = CancellationToken::new();
    daemon::cancel_at_signals(&stop, "writes under way are finished and the lease is released")?;
    let (key, sealed_by) = watch::channel(None);
    let seals = if has_webhook { Seals::by(sealed_by) } else { Seals::default() };
    let mut webhook = std::pin::pin!(serve_webhook(&config, webhook, (key, serves))?);
    tokio::select! {
        biased;
        ended = controller::run(config, options, (seals, stamps), stop) => ended?,
        ended = &mut webhook => return Err(Error::Webhook(ended.err().unwrap_or_else(|| std::io::Error::other("it ended")))),
    }
    if has_webhook {
        tracing::info!(
            "the webhook answers for another {LINGER:?}, since the API server may still ask the webhook"
        );
        let _ = tokio::time::timeout(LINGER, webhook).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// For how long the webhook of an operator that was told to stop still answers. The nodes learn late that a pod of the Service ends, and
/// the API server stores a job without a seal if the webhook does not answer.
const LINGER: Duration = Duration::from_secs(8);

/// How the webhook runs, if a port was given.
fn webhook_options(args: &OperatorArgs) -> Option<webhook::Options> {
    let namespace = args.webhook_namespace.as_ref().unwrap_or(&args.leader_elect_namespace);
    let certificate = match &args.webhook_certificate_dir {
        Some(directory) => webhook::CertificateFrom::Directory(directory.clone()),
        None => webhook::CertificateFrom::Operator { configuration: args.webhook_configuration.clone() },
    };
    Some(webhook::Options {
        addr: (Ipv6Addr::UNSPECIFIED, args.webhook_port?).into(),
        namespace: namespace.clone(),
        service: args.webhook_service.clone(),
        secret: args.webhook_secret.clone(),
        certificate,
    })
}

/// The webhook at work, which does not wait for leadership; without options, a future that never ends.
fn serve_webhook(
    config: &Config,
    options: Option<webhook::Options>,
    (key, serves): (watch::Sender<Option<Key>>, watch::Sender<bool>),
) -> Result<impl Future<Output = std::io::Result<()>> + use<>, Error> {
    let webhook = options.map(|options| {
        let client = controller::client(config.clone())?;
        Ok::<_, Error>(webhook::run(client, controller::Clock::start(), options, key, serves))
    });
    let webhook = webhook.transpose()?;
    Ok(async move {
        match webhook {
            Some(webhook) => webhook.await,
            None => std::future::pending().await,
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: OperatorArgs,
    }

    #[test]
    fn of_two_arguments_the_last_counts() {
        let arguments = [
            "operator",
            "--health-addr=[::]:1",
            "--no-leader-elect",
            "--health-addr=[::]:2",
            "--no-leader-elect",
        ];
        let args = Cli::try_parse_from(arguments).map(|cli| cli.args).unwrap();
        assert_eq!((args.health_addr.port(), args.no_leader_elect), (2, true));
    }
}
