/**
 * Hand-written wire codec for inference messages. proto-loader's codec is right but builds an object a message and copies the
 * tensor; a load generator and a simulated server that share two cores cannot afford that. Both codecs are held to the same
 * bytes by property tests.
 */
export {
  classificationCount,
  decodeInferRequest,
  decodeInferRequestHead,
  encodeInferRequest,
  type DecodedInferRequest,
  type DecodedRequestedOutput,
  type InferRequestArgs,
} from "./wire-request";
export {
  decodeInferResponse,
  encodeInferResponse,
  type DecodedInferResponse,
  type InferResponseArgs,
  type InferResponseOutput,
} from "./wire-response";
export { readContents } from "./wire-contents";
export { WireError } from "./wire-reader";
export {
  contentsFields,
  noParameters,
  type ContentsField,
  type ContentsSpan,
  type InferParameter,
  type InferParameters,
  type Span,
  type WireTensor,
} from "./wire-tensor";
export {
  ClassificationError,
  decodeBytesTensor,
  decodeClassifications,
  encodeBytesTensor,
  encodeClassifications,
  type Classification,
} from "./classification";
