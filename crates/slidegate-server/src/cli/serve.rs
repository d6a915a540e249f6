//! `slidegate serve`: the server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slidegate::RuleSet;
use slidegate::time::SystemClock;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::log::{self, Log, LogFormat};
use super::output::error_lines;
use crate::config::{DEFAULT_RULE, Startup, StartupFile};
use crate::http::{Drained, Server};
use crate::reload::{FileReloader, FileWatch, watch};
use crate::service::{Bounds, Service, Settings};

/// Serve decisions over HTTP
///
/// Without arguments: in memory, on 127.0.0.1:8080, with inline rules and one rule `default` of 5 per minute.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The configuration file with rules and settings (YAML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where states live: memory, sqlite:PATH or redis://... [default: the store of the configuration, else memory]
    ///
    /// A Redis has parameters: `redis://HOST/2?key_prefix=app&deadline=20ms`, also `key_template`, `log_layout`,
    /// `connections`, `connect_timeout` and `deny_cache`. The configuration has them below `store`.
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Address and port of HTTP [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// Address and port of Envoy's rate limit protocol; this version supports only `off`
    #[arg(long, value_name = "ADDR|off", value_parser = wire)]
    grpc: Option<Wire>,

    /// Address and port of the Redis protocol; this version supports only `off`
    #[arg(long, value_name = "ADDR|off", value_parser = wire)]
    resp: Option<Wire>,

    /// The lowest level that is logged: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log::level)]
    log_level: tracing::Level,

    /// The format of the log: json or text [default: text on a terminal, else json]
    #[arg(long, value_name = "FORMAT", value_parser = log::format)]
    log_format: Option<LogFormat>,
}

const HELP: &str = r#"Example:

  slidegate serve &
  curl -d '{"rule":"default","key":"alice"}' \
      -H 'content-type: application/json' http://127.0.0.1:8080/v1/check

The server reloads its configuration when the file changes, on SIGHUP and on
POST /v1/admin/reload. SIGTERM and SIGINT stop it after the requests in flight;
a second one stops it at once."#;

/// Open files besides connections: standard streams, listeners, runtimes, the store.
const OTHER_FILES: u64 = 128;
/// Pause after a SIGHUP that has no effect, so that many of them are few lines.
const HANGUP_PAUSE: Duration = Duration::from_secs(1);

/// The address of a wire that this version does not support; `None` is off.
type Wire = Option<SocketAddr>;

fn wire(text: &str) -> Result<Wire, String> {
    match text {
        "off" => Ok(None),
        text => text.parse().map(Some).map_err(|_| "expected ADDRESS:PORT or `off`".to_owned()),
    }
}

/// Serves until a signal stops it.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    for (flag, wire) in [("--grpc", args.grpc), ("--resp", args.resp)] {
        if let Some(address) = wire.flatten() {
            bail!(
                "{flag}: {address} cannot be served, this version speaks HTTP only; write `{flag} off` or leave it out"
            );
        }
    }
    let flags = [("store", args.store.as_deref()), ("http", args.http.as_deref())];
    let Startup { mut settings, rules, warnings, file } =
        Startup::read(args.config.as_deref(), &flags, std::env::vars_os())?;
    let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    warnings.extend(raise_limit(&mut settings.bounds));
    // From here on nothing writes to stderr directly: it may block.
    let log = Log::install(args.log_level, args.log_format)?;
    serve(&settings, rules, file, &warnings, &log).or_else(|error| {
        for line in error_lines(&error) {
            log.print(&format!("error: {line}"));
        }
        Ok(ExitCode::from(2))
    })
}

fn serve(
    settings: &Settings,
    rules: RuleSet,
    file: Option<StartupFile>,
    warnings: &[String],
    log: &Log,
) -> Result<ExitCode> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .context("cannot start: the system refuses a resource for the async runtime (such as an epoll)")?;
    runtime.block_on(async {
        let terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        let hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
        let example = example(&rules);
        let clock = Arc::new(SystemClock::new());
        let service = Service::open(settings, rules, Arc::clone(&clock) as _).await?;
        service.counters.metrics.set_dropped_log_lines(log.dropped_lines());
        let reloader = file.map(|file| Arc::new(reloader(file, &service)));
        let watched = reloader.as_ref().map(watch).transpose();
        let watched = watched.context("cannot watch the directory of the configuration file")?;
        tokio::spawn(on_hangup(hangup, watched));
        let server = Server::bind(settings, service, clock, reloader)?;
        let url = format!("{}://{}", server.scheme(), server.address());
        log.announce(&format!(
            "slidegate listens on {url}; try: curl -d '{example}' -H 'content-type: application/json' {url}/v1/check"
        ));
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let (drain, close) = on_stop_signals(terminate, interrupt);
        let Drained { cut, hastened } = server.run(drain, close).await?;
        if cut > 0 && !hastened {
            tracing::warn!(connections = cut, "connections were cut: their requests exceeded drain_time");
        } else if cut > 0 {
            tracing::warn!(connections = cut, "connections were cut by the second signal");
        }
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    })
}

/// Two futures: the first SIGTERM or SIGINT, which begins to drain, and the second, which ends that.
fn on_stop_signals(
    mut terminate: Signal,
    mut interrupt: Signal,
) -> (impl Future<Output = ()>, impl Future<Output = ()>) {
    let (drain, drained) = oneshot::channel();
    let (close, closed) = oneshot::channel();
    tokio::spawn(async move {
        for (to, line) in [
            (drain, "stopping; requests in flight are answered first"),
            (close, "stopping at once after a second signal"),
        ] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("{line}");
            // The server may have ended meanwhile.
            to.send(()).ok();
        }
    });
    (async { drop(drained.await) }, async { drop(closed.await) })
}

/// Reloads the configuration file on every SIGHUP. Without a file, a SIGHUP has no effect but a line in the log.
async fn on_hangup(mut hangup: Signal, watched: Option<FileWatch>) {
    while hangup.recv().await.is_some() {
        if let Some(watched) = &watched {
            watched.request_reload();
        } else {
            tracing::warn!(
                "SIGHUP has no effect: the server was started without a file; start it with --config FILE"
            );
            sleep(HANGUP_PAUSE).await;
        }
    }
}

/// A reloader that reports to the log and the metrics.
fn reloader(file: StartupFile, service: &Service) -> FileReloader {
    let metrics = Arc::clone(&service.counters.metrics);
    metrics.set_config_hash(&file.config.hash());
    let (live, tokens) = (Arc::clone(&service.live), Arc::clone(&service.tokens));
    FileReloader::new(file, live, tokens, Arc::clone(&service.limiter), move |report| {
        metrics.count_reload(report.is_in_force());
        if let Some(hash) = &report.hash {
            metrics.set_config_hash(hash);
        }
        for warning in &report.warnings {
            tracing::warn!("{warning}");
        }
        if report.is_in_force() {
            tracing::info!("{report}");
        } else {
            tracing::error!("{report}");
        }
    })
}

/// An example body for the rules of this server.
fn example(rules: &RuleSet) -> String {
    let name = match rules.iter().next() {
        Some(first) if rules.get(DEFAULT_RULE).is_err() => first.name(),
        _ => DEFAULT_RULE,
    };
    format!("{{\"rule\":\"{name}\",\"key\":\"alice\"}}")
}

/// Raises the limit of open files. If that is not enough, lowers the bound on connections and returns a warning.
fn raise_limit(bounds: &mut Bounds) -> Option<String> {
    let wanted = bounds.connections as u64 + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` means unlimited.
    if current.is_none_or(|current| current >= wanted) {
        return None;
    }
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = Rlimit { current: Some(raised), maximum };
    let has = if setrlimit(Resource::Nofile, limit).is_ok() { Some(raised) } else { current };
    let has = has.unwrap_or(wanted);
    if has >= wanted {
        return None;
    }
    let fit = usize::try_from(has.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX).max(1);
    let requested = std::mem::replace(&mut bounds.connections, fit);
    Some(format!(
        "connections: {requested} need {wanted} open files and the system allows {has}, so {fit} are served; raise the limit with ulimit -n {wanted}"
    ))
}
