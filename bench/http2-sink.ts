/** A node:http2 server that swallows gRPC requests and answers at once; a process of its own for bench/transports.ts. Prints its port. */
import * as http2 from "node:http2";
import type { AddressInfo } from "node:net";

const head = { ":status": 200, "content-type": "application/grpc" };
/** A prefixed message of three bytes. */
const reply = Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]);

const server = http2.createServer({
  settings: { initialWindowSize: 8 << 20, maxConcurrentStreams: 1000 },
  maxSessionMemory: 1000,
});
server.on("session", (session) => session.setLocalWindowSize(64 << 20));
server.on("stream", (stream) => {
  stream.on("error", () => undefined);
  stream.resume();
  stream.on("end", () => {
    if (stream.destroyed) return;
    stream.respond(head, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(reply);
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
