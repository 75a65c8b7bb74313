import { Client, credentials, Metadata, type ClientDuplexStream, type ServiceError } from "@grpc/grpc-js";
import {
  loadControlService,
  PROTOCOL_VERSION,
  type ControllerMessage,
  type Heartbeat,
  type Prepare,
  type WorkerMessage,
} from "../../../loadgen/protocol";
import { Tally, type TallyMessage } from "../../../loadgen/tally";

/** A worker that says what a test tells it to. By default it registers, gets ready, and reports `requests` good requests in `deltas` parts. */
export class FakeWorker {
  readonly received: ControllerMessage[] = [];
  /** Status with which the controller ended the stream. */
  ended: ServiceError | undefined;
  requests = 100;
  deltas = 2;
  busyWaitMs = 0;
  onPrepare: (prepare: Prepare) => void = ({ runId }) => this.say({ body: "prepared", prepared: { runId } });
  onStart: (runId: string) => void = (runId) => this.reportAll(runId);
  private readonly client: Client;
  readonly stream: ClientDuplexStream<WorkerMessage, ControllerMessage>;

  constructor(
    port: number,
    token: string,
    readonly name: string,
  ) {
    this.client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      "grpc.use_local_subchannel_pool": 1,
    });
    const { path, requestSerialize, responseDeserialize } = loadControlService().Work;
    const metadata = new Metadata();
    if (token !== "") metadata.set("authorization", `Bearer ${token}`);
    this.stream = this.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    this.stream.on("error", (error: ServiceError) => (this.ended = error));
    this.stream.on("data", (message: ControllerMessage) => {
      this.received.push(message);
      if (message.body === "prepare") this.onPrepare(message.prepare);
      if (message.body === "start") this.onStart(message.start.runId);
    });
  }

  register(protocolVersion = PROTOCOL_VERSION, instanceId = "a"): void {
    this.say({
      body: "register",
      register: { name: this.name, instanceId, protocolVersion, pid: 1, cores: 1 },
    });
  }

  say(message: WorkerMessage): void {
    this.stream.write(message);
  }

  /** A report of this many requests, each answered in `responseMs`, in interval 0. */
  tally(requests: number, responseMs = 10): TallyMessage {
    const tally = new Tally();
    for (let i = 0; i < requests; i++) {
      tally.sent(0, true);
      const responseUs = responseMs * 1000;
      const ending = responseMs <= 100 ? "ok" : "late";
      tally.ended({
        interval: 0,
        ending,
        responseUs,
        serviceUs: responseUs,
        address: "a:1",
        error: undefined,
      });
    }
    return tally.toMessage();
  }

  delta(runId: string, sequence: number, measured: TallyMessage, heartbeat: Heartbeat | null = null): void {
    const warmup = new Tally().toMessage();
    this.say({ body: "delta", delta: { runId, sequence, measured, warmup, sentBytes: 1000, heartbeat } });
  }

  done(runId: string, lastSequence: number, planned: number, loopDelayP99Ms = 0, latenessP50Ms = 0): void {
    const waiting = { busyWaitMs: this.busyWaitMs, busyWaitShare: this.busyWaitMs / 10 };
    const health = { loopDelayP99Ms, cpuShare: 0.5, wireMbPerS: 10, latenessP50Ms, ...waiting };
    this.say({ body: "done", done: { runId, lastSequence, planned, health } });
  }

  reportAll(runId: string): void {
    for (let part = 1; part <= this.deltas; part++)
      this.delta(runId, part, this.tally(this.requests / this.deltas));
    this.done(runId, this.deltas, this.requests);
  }

  close(): void {
    this.stream.cancel();
    this.client.close();
  }
}
