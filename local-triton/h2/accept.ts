import { Socket, type SocketConstructorOpts } from "node:net";

/** What Node keeps in a socket besides its public interface; present in Node 20 to 24. */
interface SocketInternals {
  _handle: object | null;
  _server: unknown;
}

/** Reads of one socket land here, one after the other, bytes. Larger than Node's 64 KiB: a request of 600 kB takes fewer reads. */
const READ_BUFFER_BYTES = 256 * 1024;

/**
 * Makes an accepted (paused) socket read into one buffer of its own, over and over. Node gives every read of an accepted socket a
 * fresh 64 KiB buffer, and clearing them away costs more than handling the requests in them; `onread` avoids that, but is offered for
 * sockets that one creates, so the accepted socket's handle moves into one of those. Where a Node version keeps its handle
 * elsewhere, the socket stays as it is and gets slower, not wrong.
 * @param onChunk takes what was read; the bytes are only valid during the call
 */
export function readIntoOneBuffer(accepted: Socket, onChunk: (chunk: Buffer) => void): Socket {
  const internals = accepted as unknown as SocketInternals;
  const handle = internals._handle;
  if (typeof handle !== "object" || handle === null || !("useUserBuffer" in handle)) {
    accepted.on("data", onChunk);
    accepted.resume();
    return accepted;
  }
  internals._handle = null;
  const options = {
    handle,
    onread: {
      buffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES),
      callback: (bytes: number, buffer: Uint8Array): boolean => {
        onChunk((buffer as Buffer).subarray(0, bytes));
        return true;
      },
    },
  };
  const socket = new Socket(options as SocketConstructorOpts);
  // The server counts its sockets by this field, to know when it is closed.
  (socket as unknown as SocketInternals)._server = internals._server;
  internals._server = null;
  socket.resume();
  return socket;
}
