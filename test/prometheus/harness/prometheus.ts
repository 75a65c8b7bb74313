/** A real Prometheus of the deployed version on a free loopback port, and its HTTP API. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireTool } from "../../../tools/cache";
import { toolNamed } from "../../../tools/catalogue";
import { Program, until } from "../../engine/cluster/program";
import { freePorts } from "../../free-ports";

/** One series of an instant query. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One series of a range query: [Unix seconds, value]. */
export interface RangeSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [number, number])[];
}

export interface FiringAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

export interface RuleState {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

export interface ScrapedTarget {
  readonly labels: Readonly<Record<string, string>>;
  readonly scrapeUrl: string;
  readonly health: string;
  readonly lastError: string;
}

interface WireSeries {
  readonly metric: Record<string, string>;
  readonly value: [number, string];
  readonly values: [number, string][];
}

export class Prometheus {
  private constructor(
    private readonly program: Program,
    readonly url: string,
  ) {}

  /** @param files configuration by name; `prometheus.yml` is the main one */
  static async start(folder: string, files: Readonly<Record<string, string>>): Promise<Prometheus> {
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const file = requireTool(toolNamed("prometheus")).programs["prometheus"]!;
    const [port] = await freePorts(1);
    const program = Program.start(
      "prometheus",
      file,
      [
        `--config.file=${join(folder, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=warn",
      ],
      join(folder, "prometheus.log"),
    );
    const prometheus = new Prometheus(program, `http://127.0.0.1:${port}`);
    await until("Prometheus is ready", async () => {
      if (!program.running) throw new Error(`it has ended:\n${program.logTail()}`);
      return (await fetch(`${prometheus.url}/-/ready`)).ok;
    });
    return prometheus;
  }

  /** @param atS Unix seconds; default now */
  async query(expr: string, atS?: number): Promise<Series[]> {
    const { result, resultType } = await this.ask<{ resultType: string; result: WireSeries[] }>("query", {
      query: expr,
      ...(atS === undefined ? {} : { time: String(atS) }),
    });
    if (resultType !== "vector") throw new Error(`${expr} gives a ${resultType}, not series`);
    return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
  }

  async queryRange(expr: string, fromS: number, toS: number, stepS: number): Promise<RangeSeries[]> {
    const { result } = await this.ask<{ result: WireSeries[] }>("query_range", {
      query: expr,
      start: String(fromS),
      end: String(toS),
      step: String(stepS),
    });
    return result.map(({ metric, values }) => ({
      labels: metric,
      points: values.map(([time, value]) => [time, Number(value)] as const),
    }));
  }

  async alerts(): Promise<readonly FiringAlert[]> {
    return (await this.ask<{ alerts: FiringAlert[] }>("alerts")).alerts;
  }

  async rules(): Promise<readonly RuleState[]> {
    const { groups } = await this.ask<{ groups: { rules: RuleState[] }[] }>("rules");
    return groups.flatMap(({ rules }) => rules);
  }

  async targets(): Promise<readonly ScrapedTarget[]> {
    return (await this.ask<{ activeTargets: ScrapedTarget[] }>("targets")).activeTargets;
  }

  async stop(): Promise<void> {
    await this.program.stop(5000);
  }

  private async ask<T>(what: string, parameters: Readonly<Record<string, string>> = {}): Promise<T> {
    const response = await fetch(`${this.url}/api/v1/${what}?${new URLSearchParams(parameters).toString()}`);
    const body = (await response.json()) as { status: string; data: T; error?: string };
    if (body.status !== "success") throw new Error(`Prometheus: ${what}: ${body.error ?? response.status}`);
    return body.data;
  }
}
