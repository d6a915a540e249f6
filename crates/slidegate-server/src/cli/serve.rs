//! `slidegate serve`: the server.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slidegate::RuleSet;
use slidegate::time::SystemClock;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::log::{self, LogFormat};
use crate::config::{Startup, StartupFile};
use crate::http::Server;
use crate::reload::{FileReloader, FileWatch, on_hangup, watch};
use crate::service::{Bounds, Service, Settings};

/// Serve decisions over HTTP
///
/// Without arguments: in memory, on 127.0.0.1:8080, with inline rules and one rule `default` of 5 per minute.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Rules by name, and settings (YAML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where states live [default: what the configuration says, else memory] [supported: memory, sqlite:PATH, redis://...]
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Where HTTP is served [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// Where Envoy's protocol is served; this version has `off` only
    #[arg(long, value_name = "ADDR|off", value_parser = wire)]
    grpc: Option<Wire>,

    /// Where the Redis protocol is served; this version has `off` only
    #[arg(long, value_name = "ADDR|off", value_parser = wire)]
    resp: Option<Wire>,

    /// The least important lines that are logged: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log::level)]
    log_level: tracing::Level,

    /// How they are written: json or text [default: text on a terminal, else json]
    #[arg(long, value_name = "FORMAT", value_parser = log::format)]
    log_format: Option<LogFormat>,
}

const HELP: &str = r#"Example:

  slidegate serve &
  curl -d '{"rule":"default","key":"alice"}' \
      -H 'content-type: application/json' http://127.0.0.1:8080/v1/check

A changed file comes into force by itself; SIGHUP and POST /v1/admin/reload read it
again too. SIGTERM and SIGINT end it once all requests that have begun are answered."#;

/// Files that are open besides connections: standard ones, listeners, runtimes, the store.
const OTHERS: u64 = 128;

/// Where a wire that is not there yet should be served; `None` is off.
type Wire = Option<SocketAddr>;

fn wire(text: &str) -> Result<Wire, String> {
    match text {
        "off" => Ok(None),
        text => text.parse().map(Some).map_err(|_| "expected ADDRESS:PORT or `off`".to_owned()),
    }
}

/// Serves until it is told to end.
pub(super) fn run(args: &Args, err: &mut impl Write) -> Result<ExitCode> {
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
    let format = log::install(args.log_level, args.log_format)?;
    let greet = |greeting: &str| match format {
        // For people, to copy from.
        LogFormat::Text => drop(writeln!(err, "{greeting}")),
        LogFormat::Json => tracing::info!("{greeting}"),
    };
    serve(&settings, rules, file, &warnings, greet)
}

fn serve(
    settings: &Settings,
    rules: RuleSet,
    file: Option<StartupFile>,
    warnings: &[String],
    greet: impl FnOnce(&str),
) -> Result<ExitCode> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.context("cannot start: the system refuses what waiting needs (such as an epoll)")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        let example = example(&rules);
        // The one clock of the server.
        let clock = Arc::new(SystemClock::new());
        let service = Service::open(settings, rules, Arc::clone(&clock) as _).await?;
        let reloader = file.map(|file| Arc::new(reloader(file, &service)));
        // It ends with the server.
        let _watch = reloader.as_ref().map(watched).transpose()?;
        let server = Server::bind(settings, service, clock, reloader)?;
        let address = server.address();
        greet(&format!(
            "slidegate listens on http://{address}; try: curl -d '{example}' -H 'content-type: application/json' http://{address}/v1/check"
        ));
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("asked to end; what has begun is answered first");
        };
        let drained = server.run(stop).await?;
        if drained.cut > 0 {
            tracing::warn!(connections = drained.cut, "connections were cut, their requests did not end in time");
        }
        tracing::info!("ended");
        Ok(ExitCode::SUCCESS)
    })
}

/// Reads the file again when asked, and tells the log and the metrics what came of it.
fn reloader(file: StartupFile, service: &Service) -> FileReloader {
    let metrics = Arc::clone(&service.counters.metrics);
    metrics.configured(&file.config.hash());
    FileReloader::new(file, Arc::clone(&service.live), Arc::clone(&service.limiter), move |report| {
        metrics.reloaded(report.is_good());
        if let Some(hash) = &report.hash {
            metrics.configured(hash);
        }
        for warning in &report.warnings {
            tracing::warn!("{warning}");
        }
        if report.is_good() {
            tracing::info!("{report}");
        } else {
            tracing::error!("{report}");
        }
    })
}

fn watched(reloader: &Arc<FileReloader>) -> Result<FileWatch> {
    on_hangup(reloader).context("cannot listen for SIGHUP")?;
    watch(reloader).context("cannot watch the directory of the configuration file")
}

/// A body that this server answers.
fn example(rules: &RuleSet) -> String {
    let name = match rules.iter().next() {
        Some(first) if rules.get("default").is_err() => first.name(),
        _ => "default",
    };
    format!("{{\"rule\":\"{name}\",\"key\":\"alice\"}}")
}

/// Raises the limit of open files, and lowers the bound on connections to fit. Says so where that was necessary.
fn raise_limit(bounds: &mut Bounds) -> Option<String> {
    let wanted = bounds.connections as u64 + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is no limit.
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
    let fit = usize::try_from(has.saturating_sub(OTHERS)).unwrap_or(usize::MAX).max(1);
    let asked = std::mem::replace(&mut bounds.connections, fit);
    Some(format!(
        "connections: {asked} need {wanted} open files and the system allows {has}, so {fit} are served; raise it with ulimit -n {wanted}"
    ))
}
