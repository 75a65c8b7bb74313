/** Options and help text of `npm run load`. */
import { Command, Option } from "commander";
import type { Raw } from "./option-values";

export interface RawLoadOptions {
  triton?: Raw;
  variant?: Raw;
  timeDilation?: Raw;
  model?: Raw;
  inputDims?: Raw;
  images?: Raw;
  rate?: Raw;
  arrivals?: Raw;
  ramp?: Raw;
  steps?: Raw;
  users?: Raw;
  spawnRate?: Raw;
  think?: Raw;
  concurrency?: Raw;
  arrivalsFile?: Raw;
  warmup?: Raw;
  duration?: Raw;
  slo?: Raw;
  stopWhen?: Raw;
  minSamples?: Raw;
  deadline?: Raw;
  maxInFlight?: Raw;
  connections?: Raw;
  newConnectionPerRequest?: true;
  tls?: true;
  tlsCa?: Raw;
  tlsName?: Raw;
  transport?: Raw;
  workers?: Raw;
  busyWaitMs?: Raw;
  seed?: Raw;
  json?: Raw;
  hdr?: Raw;
  csv?: Raw;
}

const examples = `Examples:
  npm run load                                              try it: a local server with a simulated T4, 50 requests/s
  npm run load -- --triton HOST:8001 --rate 400             400 requests/s by chance (Poisson) for 30 s, p95 within 100 ms?
  npm run load -- --triton HOST:8001 --concurrency 16       16 in flight, as perf_analyzer --concurrency-range 16 does
  npm run load -- --triton HOST:8001 --users 3000 --duration 10m --stop-when 'p95>100ms/10s'
                                                            the documents' ramp: 5 users/s up to 3000, think 0.8 to 1.2 s,
                                                            and Stop is pressed when the chart's 95 % passes 100 ms
  npm run load -- --triton HOST:8001 --steps 100x30s,200x30s,300x30s --json result.json
  npm run load -- --triton dns:///triton.serving.svc:8001 --arrivals-file access.csv --hdr load.hlog
                                                            recorded arrivals over every replica behind a headless service`;

const exitCodes = `Exit codes:
    0  the SLO held
    1  unexpected error
    2  bad option or unreadable input; a server or model that cannot be loaded
    3  the SLO was broken, or --stop-when ended the load
    4  the measurement is invalid (the client was too slow, a worker was lost ...): its figures must not be used
  130  interrupted by Ctrl-C or SIGTERM: what was measured until then is shown and written, marked as ended early; a second
       Ctrl-C does not wait for open answers`;

/** The command with all options; values are optional to commander, so that every missing one is reported, not only the first. */
export function loadCommand(knownVariants: readonly string[]): Command {
  return (
    new Command("load")
      .description(
        "Offers one load to a server and says whether the SLO held. Every request carries one image; response times count from the planned send.",
      )
      .optionsGroup("Server:")
      .option(
        "--triton [HOST:PORT]",
        "gRPC address; replicas: A,B or dns:///NAME:PORT (default: a local server with a simulated T4)",
      )
      .option("--model [NAME]", "model to ask (default: the only one that is ready)")
      .option("--input-dims [H,W,3]", "shape of an image, if the model leaves it open")
      .option("--images [DIR]", "folder of JPEG or PNG images to send (default: the project's)")
      .option("--tls", "speak TLS; further: --tls-ca FILE, --tls-name NAME")
      .option("--tls-ca [FILE]", "PEM file of the trusted authorities (default: the system's)")
      .option("--tls-name [NAME]", "name that the certificate must have (default: the address's host)")
      .option(
        "--variant [NAME]",
        `what the local server serves: ${knownVariants.join(", ")} (default: the first)`,
      )
      .option("--time-dilation [F]", "wall seconds per model second of the local server (default: 1)")
      .optionsGroup("Load, one of:")
      .option("--rate [N]", "N requests per second (default: 50)")
      .option("--ramp [FROM..TO/TIME]", "a rate that grows evenly, then stays, e.g. 0..500/60s")
      .option("--steps [RATExTIME,...]", "one rate after another, e.g. 100x30s,200x30s")
      .option("--users [N]", "closed loop: N users who wait for the answer, think, and send again")
      .option("--concurrency [N]", "closed loop: always N requests in flight")
      .option("--arrivals-file [FILE]", "recorded arrival times: seconds or ISO timestamps, one a line")
      .optionsGroup("More about the load:")
      .option(
        "--arrivals [KIND]",
        "poisson (by chance) or constant (even gaps), for --rate, --ramp, --steps (default: poisson)",
      )
      .option("--spawn-rate [N]", "users who start per second (default: 5)")
      .option("--think [MIN..MAX]", "seconds that a user thinks, uniform (default: 0.8..1.2)")
      .option(
        "--warmup [TIME]",
        "load before the measured time (default: 3s for a steady rate or concurrency, else 0s)",
      )
      .option(
        "--duration [TIME]",
        "measured time, e.g. 90s or 5m (default: 30s, or as long as the load changes)",
      )
      .option("--seed [N]", "seed of arrivals and think times (default: 1)")
      .optionsGroup("Judgement:")
      .option("--slo [pQ=BOUND]", "percentile and bound of the response time (default: p95=100ms)")
      .option("--stop-when [RULE]", "end when a window breaks a bound, e.g. 'p95>100ms/10s'")
      .option(
        "--min-samples [N]",
        "requests that the window must hold before it is judged (default: 10 beyond the percentile)",
      )
      .option(
        "--deadline [TIME]",
        "a request without an answer after this fails (default: 5s, or ten SLO bounds)",
      )
      .optionsGroup("Client:")
      .option(
        "--max-in-flight [N]",
        "cap; what is over it is not sent and counts as late (default: from the load)",
      )
      .option("--connections [N]", "HTTP/2 connections per server and worker (default: 4)")
      .option("--new-connection-per-request", "connect anew for every request, as the documents' client does")
      .option("--transport [NAME]", "lean or grpc-js (default: lean)")
      .option("--workers [N]", "worker processes (default: auto)")
      .option(
        "--busy-wait-ms [MS]",
        "workers wait awake this long for each planned send: less lateness for a core each, e.g. 2 (default: 0)",
      )
      .optionsGroup("Output:")
      .option("--json [FILE]", "the whole result as JSON, on standard output without a FILE")
      .option("--csv [FILE]", "a line a second: rate, percentiles, failures, in flight, lateness")
      .option("--hdr [FILE]", "HdrHistogram log of the response times, an interval a second")
      .helpOption("-h, --help", "show this help")
      .configureHelp({
        optionTerm: (option: Option) => option.flags.replace(/\[(.*)\]$/, "<$1>"),
        helpWidth: 132,
      })
      .addHelpText("after", `\n${examples}\n\n${exitCodes}`)
      // Strangers are reported together with all other complaints.
      .allowUnknownOption()
      .allowExcessArguments()
  );
}
