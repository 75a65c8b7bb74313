import { images } from "../components/images";
import type { StackConfig } from "./derived-config";

/**
 * Images of a stack that come from outside and have a tag to pin. The load generator's own image is pinned by its build, the
 * driver installer is part of the node's image.
 */
export function stackImages(config: StackConfig): string[] {
  const wanted = [
    config.triton,
    ...(config.conversionVm ? [config.converter] : []),
    ...(config.monitoring ? [images.prometheus, images.grafana] : []),
    ...(config.autoscale ? [images.prometheusAdapter] : []),
    ...(config.driverMode === "daemonset" ? [images.pause] : []),
  ];
  const tagged = wanted
    .map((image) => image.replace(/@sha256:.*$/, ""))
    .filter((image) => /:[^/]+$/.test(image));
  return [...new Set(tagged)];
}
