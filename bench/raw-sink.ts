/**
 * A server that swallows gRPC requests and answers at once, on a raw socket: it costs a fraction of what a node:http2 server does, so that a
 * load worker, not its counterpart, is the limit. A process of its own; prints its port.
 *
 * With an argument it stalls after its first answers, which a load worker takes for warm-up: "silent" goes on reading and never answers,
 * "deaf" does not even read.
 */
import { createServer, type AddressInfo, type Socket } from "node:net";
import { FrameParser } from "../http2/frame-parser";
import {
  DEFAULT_WINDOW_BYTES,
  Flag,
  frame,
  FrameType,
  MIN_MAX_FRAME_BYTES,
  SettingId,
  settingsPayload,
  uint32,
} from "../http2/frames";
import { literal } from "../http2/literals";

const [stall] = process.argv.slice(2);
/** Answers before a stall: two a connection. */
const ANSWERS_BEFORE_STALL = 8;
const sockets = new Set<Socket>();
let answered = 0;
const STREAM_WINDOW_BYTES = 8 << 20;
const CONNECTION_WINDOW_BYTES = 64 << 20;
const greeting = Buffer.concat([
  frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES]])),
  frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(CONNECTION_WINDOW_BYTES - DEFAULT_WINDOW_BYTES)),
]);

const head = frame(
  FrameType.HEADERS,
  Flag.END_HEADERS,
  0,
  Buffer.concat([Buffer.from([0x88]), literal("content-type", "application/grpc")]),
);
/** A prefixed message of three bytes. */
const message = frame(FrameType.DATA, 0, 0, Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]));
const trailers = frame(FrameType.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 0, literal("grpc-status", "0"));
const reply = Buffer.concat([head, message, trailers]);
/** Where the stream ids stand in the reply. */
const idsAt = [0, head.length, head.length + message.length].map((at) => at + 5);

/** Answers one client. */
function serve(socket: Socket): (chunk: Buffer) => void {
  /** Answers to the requests of one chunk: one write. */
  let answers: Buffer[] = [];
  let takenBytes = 0;
  let streamId = 0;
  const parser = new FrameParser(
    {
      frame: (type, flags, _, payload) => {
        if ((flags & Flag.ACK) !== 0) return;
        if (type === FrameType.SETTINGS)
          answers.push(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
        if (type === FrameType.PING) answers.push(frame(FrameType.PING, Flag.ACK, 0, payload));
      },
      dataStart: (id, bytes) => {
        streamId = id;
        takenBytes += bytes;
      },
      dataPart: () => undefined,
      dataEnd: (endStream) => {
        if (!endStream || (stall !== undefined && answered === ANSWERS_BEFORE_STALL)) return;
        if (++answered === ANSWERS_BEFORE_STALL && stall === "deaf") for (const open of sockets) open.pause();
        const answer = Buffer.from(reply);
        for (const at of idsAt) answer.writeUInt32BE(streamId, at);
        answers.push(answer);
      },
    },
    {
      maxFrameBytes: MIN_MAX_FRAME_BYTES,
      maxControlFrameBytes: MIN_MAX_FRAME_BYTES,
      expectPreface: true,
    },
  );
  return (chunk) => {
    parser.push(chunk);
    if (takenBytes > CONNECTION_WINDOW_BYTES / 2) {
      answers.push(frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(takenBytes)));
      takenBytes = 0;
    }
    if (answers.length > 0) socket.write(answers.length === 1 ? answers[0]! : Buffer.concat(answers));
    answers = [];
  };
}

const server = createServer({ noDelay: true }, (socket) => {
  sockets.add(socket);
  socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
  socket.write(greeting);
  socket.on("data", serve(socket));
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
