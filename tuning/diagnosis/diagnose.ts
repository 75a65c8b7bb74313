import type { Diagnosis } from "../outcome";
import type { Knee } from "../search/model-knee";
import type { SearchState } from "../search/search-state";
export function diagnose(_state: SearchState, _knee: Knee): Diagnosis { return { cause: "none", summary: "", evidence: {}, nextMove: null }; }
