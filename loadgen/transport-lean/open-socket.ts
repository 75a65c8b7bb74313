/** Sockets of the lean transport: plain TCP, or TLS that agreed on HTTP/2. */
import { connect, isIP, type Socket } from "node:net";
import * as tls from "node:tls";
import type { TlsOptions } from "../load-spec";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** Undefined: plain text, HTTP/2 with prior knowledge. */
  readonly tls: TlsOptions | undefined;
}

export interface SocketListener {
  /** The socket may be written to. */
  open(): void;
  /** Bytes came; they are only valid during the call. */
  received(bytes: Buffer): void;
  /** Called once or more: the connection is gone, or of no use. */
  broken(reason: string): void;
}

const READ_BUFFER_BYTES = 65_536;

/** Connects; reads into one buffer that is used again and again. */
export function openSocket({ host, port, tls: secure }: Endpoint, listener: SocketListener): Socket {
  const onread = {
    buffer: Buffer.allocUnsafe(READ_BUFFER_BYTES),
    callback: (bytes: number, buffer: Uint8Array) => {
      listener.received((buffer as Buffer).subarray(0, bytes));
      return true;
    },
  };
  let socket: Socket;
  if (secure === undefined) {
    socket = connect({ host, port, noDelay: true, onread });
    socket.once("connect", () => listener.open());
  } else {
    const name = secure.serverName || host;
    // `onread` is an option of net.connect that tls.connect passes on; its types do not say so.
    const options: tls.ConnectionOptions & { onread: typeof onread; noDelay: boolean } = {
      ...{ host, port, onread, noDelay: true, ALPNProtocols: ["h2"] },
      ...(secure.caPem === "" ? {} : { ca: secure.caPem }),
      // An address is no server name (RFC 6066, 3); it is compared with the certificate all the same.
      ...(isIP(name) ? {} : { servername: name }),
      checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
    };
    const secured = tls.connect(options);
    socket = secured;
    secured.once("secureConnect", () => {
      if (secured.alpnProtocol === "h2") listener.open();
      else listener.broken("the server does not speak HTTP/2 over TLS (no ALPN protocol h2)");
    });
  }
  socket.on("error", (error) => listener.broken(error.message));
  socket.on("end", () => listener.broken("the server closed the connection"));
  socket.on("close", () => listener.broken("the connection was closed"));
  return socket;
}
