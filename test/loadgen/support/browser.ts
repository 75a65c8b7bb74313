/** Headless Chromium over the DevTools protocol's pipe: enough to open a page, look at it, type and click. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly sessionId?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

export class Browser {
  private nextId = 1;
  private readonly pending = new Map<number, (answer: Answer) => void>();
  /** Errors and violations that pages reported. */
  readonly complaints: string[] = [];

  private constructor(
    private readonly child: ChildProcess,
    private readonly profile: string,
  ) {
    let rest = "";
    (child.stdio[4] as Readable).setEncoding("utf8").on("data", (text: string) => {
      const parts = (rest + text).split("\0");
      rest = parts.pop()!;
      for (const part of parts) this.onAnswer(JSON.parse(part) as Answer);
    });
  }

  static async start(): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), "console-browser-"));
    const child = spawn(
      process.env["CHROMIUM"] ?? "chromium",
      [
        ...["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"],
        ...["--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"],
      ],
      { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
    );
    const browser = new Browser(child, profile);
    await Promise.race([
      browser.send("Browser.getVersion"),
      new Promise((_, reject) =>
        child.once("error", (error) => reject(new Error(`no Chromium: ${error.message}`))),
      ),
    ]);
    return browser;
  }

  async open(url: string): Promise<Page> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page((method, params) => this.send(method, params, sessionId as string));
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    await page.go(url);
    return page;
  }

  async close(): Promise<void> {
    const gone = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await gone;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 20 });
  }

  private send(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = this.nextId++;
    (this.child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) =>
      this.pending.set(id, ({ result, error }) =>
        error === undefined ? resolve(result ?? {}) : reject(new Error(`${method}: ${error.message}`)),
      ),
    );
  }

  private onAnswer(answer: Answer): void {
    if (answer.method === "Runtime.exceptionThrown" || answer.method === "Log.entryAdded")
      this.complaints.push(JSON.stringify(answer.params));
    if (answer.id === undefined) return;
    this.pending.get(answer.id)?.(answer);
    this.pending.delete(answer.id);
  }
}

export class Page {
  constructor(readonly send: (method: string, params?: object) => Promise<Record<string, unknown>>) {}

  async go(url: string): Promise<void> {
    await this.send("Page.navigate", { url });
    await this.until("document.readyState === 'complete'");
  }

  /** Value of an expression in the page. */
  async read<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return (result as { value: T }).value;
  }

  /** Waits until an expression is true. @throws Error after `timeoutMs`, with what the page says */
  async until(expression: string, timeoutMs = 60_000): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!(await this.read<boolean>(`Boolean(${expression})`).catch(() => false))) {
      if (Date.now() > deadline)
        throw new Error(
          `never true: ${expression}; page: ${await this.read<string>("document.body.innerText")}`,
        );
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async viewport(width: number, height: number, mobile = false): Promise<void> {
    await this.send("Emulation.setDeviceMetricsOverride", {
      width,
      height,
      deviceScaleFactor: mobile ? 2 : 1,
      mobile,
    });
  }

  async dark(isDark: boolean): Promise<void> {
    const features = [{ name: "prefers-color-scheme", value: isDark ? "dark" : "light" }];
    await this.send("Emulation.setEmulatedMedia", { features });
  }

  async press(key: string): Promise<void> {
    const codes: Record<string, number> = { Tab: 9, Enter: 13, " ": 32 };
    const common = { key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: codes[key] };
    const text = key === "Enter" ? "\r" : key === " " ? " " : undefined;
    await this.send("Input.dispatchKeyEvent", {
      type: text === undefined ? "rawKeyDown" : "keyDown",
      text,
      ...common,
    });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...common });
  }

  async type(text: string): Promise<void> {
    await this.send("Input.insertText", { text });
  }

  /** PNG of what is seen, or of the whole page. */
  async screenshot(file: string, wholePage = false): Promise<void> {
    const { data } = await this.send("Page.captureScreenshot", {
      format: "png",
      captureBeyondViewport: wholePage,
    });
    writeFileSync(file, Buffer.from(data as string, "base64"));
  }
}
