/** Writes the JSON schemas that other tools read into schemas/. Run after a change of a schema: `npm run schemas`. */
import { join } from "node:path";
import { writeFileAtomic } from "../tuning/results/durable";
import { resultJsonSchema } from "../tuning/results/result-schema";

writeFileAtomic(join(__dirname, "..", "schemas", "result.schema.json"), resultJsonSchema());
