import js from "@eslint/js";
import tseslint from "typescript-eslint";
import importX from "eslint-plugin-import-x";

/**
 * The rooms and what each may import from its neighbours. Everything not listed is forbidden: arrows go one way.
 * `tuning` knows no Pulumi, `components` no tuning, `loadgen` neither.
 */
const rooms = {
  kserve: [],
  http2: [],
  "model-repo": [],
  pricing: [],
  monitoring: ["model-repo", "kserve", "loadgen"],
  "serving-model": ["model-repo"],
  loadgen: ["kserve", "http2", "model-repo"],
  "local-triton": ["kserve", "http2", "model-repo", "serving-model"],
  tuning: ["kserve", "model-repo", "serving-model", "loadgen", "pricing"],
  components: ["model-repo", "monitoring", "pricing"],
  policy: [],
  "diagnose-up": [],
  tools: [],
  targets: ["tuning", "loadgen", "kserve", "model-repo", "serving-model", "stack", "pricing"],
  stack: ["components", "model-repo", "monitoring", "pricing"],
  scripts: [
    "targets",
    "tuning",
    "loadgen",
    "local-triton",
    "kserve",
    "model-repo",
    "serving-model",
    "stack",
    "pricing",
    "monitoring",
    "diagnose-up",
  ],
};
const names = Object.keys(rooms);
const zones = names.map((room) => ({
  target: `./${room}`,
  from: names.filter((other) => other !== room && !rooms[room].includes(other)).map((other) => `./${other}`),
  message: `${room}/ may import only from: ${rooms[room].join(", ") || "no other room"}.`,
}));

/** Rooms that must not know Pulumi. */
const pulumiFree = [
  "kserve",
  "http2",
  "model-repo",
  "pricing",
  "serving-model",
  "loadgen",
  "local-triton",
  "tuning",
  "diagnose-up",
];

export default tseslint.config(
  { ignores: ["node_modules/", "dist/", "results/", "**/*.mjs", "**/*.mts", "**/*.cjs", "**/*.js"] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { "import-x": importX },
    settings: { "import-x/resolver": { node: { extensions: [".ts", ".js"] } } },
    rules: {
      "import-x/no-restricted-paths": ["error", { zones }],
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowBoolean: true },
      ],
      "@typescript-eslint/require-await": "off",
      "max-lines": ["error", { max: 300, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    files: pulumiFree.map((room) => `${room}/**/*.ts`),
    rules: {
      "no-restricted-imports": [
        "error",
        { patterns: [{ group: ["@pulumi/*"], message: "This room must not know Pulumi." }] },
      ],
    },
  },
  { files: ["test/**/*.ts"], rules: { "max-lines": "off" } },
);
