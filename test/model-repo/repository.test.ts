import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { catalogue, findVariants } from "../../model-repo/catalogue";
import { toConfigPbtxt } from "../../model-repo/config-pbtxt";
import { imagesFolder, parseLabels, readLabels, repositoryFiles } from "../../model-repo/repository";
import { InvalidVariantError } from "../../model-repo/validate-variant";
import { writeRepository, WriteRepositoryError } from "../../model-repo/write-repository";

const two = findVariants(["original", "tftrt_int8"]);

describe("data files", () => {
  it("have a label for each of the 1000 classes, in ImageNet's order", () => {
    const labels = readLabels("imagenet1k_labels.txt");
    expect(labels).toHaveLength(1000);
    expect(new Set(labels).size).toBe(1000);
    expect([labels[0], labels[285], labels[657], labels[967], labels[999]]).toEqual([
      "tench",
      "Egyptian cat",
      "missile",
      "espresso",
      "toilet tissue",
    ]);
    expect(labels.filter((label) => label.trim() !== label || label === "")).toEqual([]);
    expect(parseLabels("a\r\n\r\nb\n")).toEqual(["a", "", "b"]);
  });

  it("have photographs as JPEG and PNG of the documents' size", async () => {
    const files = (await readdir(imagesFolder)).filter((file) => !file.endsWith(".md"));
    const formats = await Promise.all(
      files.map(async (file) => {
        const { format, width, height } = await sharp(join(imagesFolder, file)).metadata();
        return `${file} ${format} ${width}x${height}`;
      }),
    );
    expect(formats.sort()).toEqual([
      "cat.jpg jpeg 450x338",
      "coffee.png png 450x338",
      "rocket.jpg jpeg 450x338",
    ]);
    const readme = await readFile(join(imagesFolder, "README.md"), "utf8");
    for (const file of files) expect(readme).toContain(`\`${file}\``);
  });
});

describe("repositoryFiles", () => {
  it("lists configuration and labels of every variant", () => {
    const files = repositoryFiles(catalogue);
    expect([...files.keys()]).toEqual(
      catalogue.flatMap(({ name }) => [`${name}/config.pbtxt`, `${name}/imagenet1k_labels.txt`]),
    );
    expect(files.get("tftrt_int8/config.pbtxt")).toBe(toConfigPbtxt(two[1]!));
    expect(parseLabels(files.get("original/imagenet1k_labels.txt")!)).toHaveLength(1000);
  });

  it("refuses variants that cannot be served", () => {
    expect(() => repositoryFiles([two[0]!, two[0]!])).toThrow(InvalidVariantError);
    expect(() => repositoryFiles([{ ...two[0]!, name: "../escape" }])).toThrow(InvalidVariantError);
  });
});

describe("writeRepository", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "model-repo-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("writes the files and an empty version folder, and nothing twice", async () => {
    const target = join(folder, "deep/er");
    const first = await writeRepository(two, target);
    expect(first).toEqual({
      written: [...repositoryFiles(two).keys()],
      unchanged: [],
      replacedForeign: [],
      others: [],
    });
    for (const [path, content] of repositoryFiles(two))
      expect(await readFile(join(target, path), "utf8")).toBe(content);
    expect((await readdir(join(target, "original"))).sort()).toEqual([
      "1",
      "config.pbtxt",
      "imagenet1k_labels.txt",
    ]);
    expect((await stat(join(target, "original/1"))).isDirectory()).toBe(true);
    expect(await writeRepository(two, target)).toEqual({ ...first, written: [], unchanged: first.written });
  });

  it("replaces its own files, keeps model files and tells of other models", async () => {
    await writeRepository(two, folder);
    await writeFile(join(folder, "original/1/weights"), "w");
    const changed = { ...two[0]!, instanceCount: 2 };
    const result = await writeRepository([changed], folder, { instanceKind: "KIND_CPU" });
    expect(result).toMatchObject({
      written: ["original/config.pbtxt"],
      unchanged: ["original/imagenet1k_labels.txt"],
      others: ["tftrt_int8"],
    });
    expect(await readFile(join(folder, "original/config.pbtxt"), "utf8")).toBe(
      toConfigPbtxt(changed, { instanceKind: "KIND_CPU" }),
    );
    expect(await readFile(join(folder, "original/1/weights"), "utf8")).toBe("w");
  });

  it("never overwrites somebody else's file without being told, and then writes nothing at all", async () => {
    await mkdir(join(folder, "tftrt_int8"));
    await writeFile(join(folder, "tftrt_int8/config.pbtxt"), 'name: "tftrt_int8"\n');
    await writeFile(join(folder, "tftrt_int8/imagenet1k_labels.txt"), "own\n");
    const failed = writeRepository(two, folder);
    await expect(failed).rejects.toThrow(WriteRepositoryError);
    await expect(failed).rejects.toThrow(
      /not written by this program: tftrt_int8\/config.pbtxt, tftrt_int8\/imagenet1k_labels.txt\. Choose another folder/,
    );
    expect(await readdir(folder)).toEqual(["tftrt_int8"]);
    const result = await writeRepository(two, folder, { overwriteForeign: true });
    expect(result.replacedForeign).toEqual(["tftrt_int8/config.pbtxt", "tftrt_int8/imagenet1k_labels.txt"]);
    expect(await readFile(join(folder, "tftrt_int8/config.pbtxt"), "utf8")).toBe(toConfigPbtxt(two[1]!));
  });

  it("says what is in the way", async () => {
    await writeFile(join(folder, "file"), "");
    await expect(writeRepository(two, join(folder, "file"))).rejects.toThrow(
      /folder .*file cannot be made \(EEXIST\)/,
    );
    await expect(writeRepository(two, join(folder, "file/x"))).rejects.toThrow(/cannot be made \(ENOTDIR\)/);
    await mkdir(join(folder, "original/config.pbtxt"), { recursive: true });
    await expect(writeRepository(two, folder)).rejects.toThrow(
      /original\/config.pbtxt cannot be read \(EISDIR\)/,
    );
    await symlink("/nowhere/at/all", join(folder, "tftrt_int8"));
    await rm(join(folder, "original"), { recursive: true });
    await expect(writeRepository(two, folder)).rejects.toThrow(WriteRepositoryError);
  });
});
