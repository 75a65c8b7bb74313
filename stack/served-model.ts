/** What a model of one's own changes about the variants that serve it: picture size, classes and labels. Pure. */
import type { ModelArtefact, Variant } from "../model-repo/variant";
import type { SourceModel } from "./source-model";
import type { StackVariants } from "./variants";

/** Classes of ImageNet, whose labels an artefact of the catalogue has. */
const imagenetClasses = 1000;
const ownLabelsFile = "labels.txt";

/** The variants as the model has them. Published figures are those of the documents' ResNet-50, so another model has none. */
export function withModel({ served, repository }: StackVariants, model: SourceModel): StackVariants {
  if (model === "resnet50") return { served, repository };
  const change = (variant: Variant): Variant => ({
    ...variant,
    artefact: artefactOf(variant.artefact, model),
    published: null,
  });
  return { served: change(served), repository: repository.map(change) };
}

function artefactOf(artefact: ModelArtefact, model: Exclude<SourceModel, "resnet50">): ModelArtefact {
  const { imageSize, labels, classes = labels?.length ?? imagenetClasses } = model;
  const { input, output } = artefact;
  const [height, width] = typeof imageSize === "number" ? [imageSize, imageSize] : (imageSize ?? []);
  return {
    ...artefact,
    input: height === undefined || width === undefined ? input : { ...input, dims: [height, width, 3] },
    output: { ...output, dims: [classes] },
    labelsFile: labels ? ownLabelsFile : classes === imagenetClasses ? artefact.labelsFile : null,
  };
}

/** Text of the model's own labels file; null when it brings none. */
export function ownLabels(model: SourceModel): string | null {
  return model === "resnet50" || model.labels === undefined ? null : `${model.labels.join("\n")}\n`;
}

/** The model as the conversion plan names it: size and classes are the artefacts'. */
export function modelInPlan(
  model: SourceModel,
): "resnet50" | Omit<Exclude<SourceModel, "resnet50">, "imageSize" | "classes" | "labels"> {
  if (model === "resnet50") return model;
  const { imageSize: _size, classes: _classes, labels: _labels, ...rest } = model;
  return rest;
}
