import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import sharp from "sharp";

/** Writes a dashboard's picture as `dashboard-NAME.png`, drawn by headless Chromium, whose text looks the same everywhere. */
export async function writePicture(folder: string, file: string, svg: string): Promise<void> {
  const [, width, height] = /width="(\d+)" height="(\d+)"/.exec(svg) ?? [];
  const work = mkdtempSync(join(tmpdir(), "picture-"));
  try {
    writeFileSync(join(work, "page.html"), `<style>body{margin:0}svg{display:block}</style>${svg}`);
    const shot = join(work, "shot.png");
    execFileSync(
      "chromium",
      [
        ...[
          "--headless",
          "--no-sandbox",
          "--disable-gpu",
          "--hide-scrollbars",
          `--user-data-dir=${join(work, "user")}`,
        ],
        ...[`--window-size=${width},${height}`, `--screenshot=${shot}`, `file://${join(work, "page.html")}`],
      ],
      { stdio: "ignore", timeout: 60_000 },
    );
    mkdirSync(folder, { recursive: true });
    const target = join(resolve(folder), `dashboard-${file.replace(/\.json$/, "")}.png`);
    await sharp(shot).png({ palette: true, compressionLevel: 9 }).toFile(target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
