import { Environment } from "./environment";
import { convertModels } from "./cloud/google";
(async () => {
  const t0 = Date.now();
  const lap = (s: string) => console.log("### " + s, ((Date.now() - t0) / 1000).toFixed(1));
  const env = await Environment.start();
  lap("env");
  const out = (s: string) => void process.stdout.write(s);
  try {
    const stack = await env.stack(process.argv[2] ?? "dev", {
      "triton-slo-stack:project": { value: "test-project" },
      "triton-slo-stack:asleep": { value: "true" },
    });
    lap("stack");
    await stack.preview({ onOutput: out }).then((pv) => lap("preview " + JSON.stringify(pv.changeSummary)));
    await stack.up({ onOutput: out });
    lap("up asleep");
    const outputs = await stack.outputs();
    convertModels(
      env.world,
      (outputs.repositoryVariants.value as { name: string }[]).map((v) => v.name),
    );
    await stack.setConfig("triton-slo-stack:asleep", { value: "false" });
    const up = await stack.up({ onOutput: out }).catch(async (e) => {
      lap("up failed");
      console.log(
        (await env.api.list("/api/v1/pods")).map((x) => [x.metadata.name, x.spec?.nodeName, x.status?.phase]),
      );
      throw e;
    });
    lap("up");
    console.log(JSON.stringify(up.outputs, null, 1).slice(0, 3000));
    const p2 = await stack.preview({ expectNoChanges: true });
    lap("noop " + JSON.stringify(p2.changeSummary));
    const r = await stack.refresh({ onOutput: out });
    lap("refresh " + JSON.stringify(r.summary.resourceChanges));
    console.log((await env.api.list("/api/v1/pods")).map((x) => [x.metadata.name, x.spec?.nodeName]));
    await stack.destroy({ onOutput: out });
    lap("destroy");
    console.log(
      env.world.all().map((t) => t.type + " " + t.id),
      env.gke.orphans,
    );
  } finally {
    await env.close();
    lap("closed");
  }
})().catch((e) => {
  console.error(String(e.message).slice(0, 500));
  process.exit(1);
});
