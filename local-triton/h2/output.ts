import type { Socket } from "node:net";

/** A client that leaves this much unread is cut off, bytes. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/** Gathers what is written within one turn of the event loop into one write: a finished batch answers many requests at once. */
export class Output {
  private parts: Buffer[] = [];
  private bytes = 0;
  private readonly flushBound = (): void => this.flush();

  constructor(private readonly socket: Socket) {}

  write(part: Buffer): void {
    if (this.parts.length === 0) process.nextTick(this.flushBound);
    this.parts.push(part);
    this.bytes += part.length;
  }

  flush(): void {
    if (this.parts.length === 0) return;
    const all = this.parts.length === 1 ? this.parts[0]! : Buffer.concat(this.parts, this.bytes);
    this.parts = [];
    this.bytes = 0;
    if (this.socket.destroyed || this.socket.writableEnded) return;
    this.socket.write(all);
    if (this.socket.writableLength > MAX_UNREAD_BYTES) this.socket.destroy();
  }
}
