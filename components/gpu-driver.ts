import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { images, pinned } from "./images";
import { dropsWithCluster, type InCluster } from "./in-cluster";

export interface GpuDriverArgs extends InCluster {
  readonly digests: Readonly<Record<string, string>>;
}

/** Where the driver is installed on the host, and where the installer sees it. */
const hostFolder = "/home/kubernetes/bin/nvidia";
const installerFolder = "/usr/local/nvidia";

/**
 * NVIDIA driver installer for Container-Optimized OS nodes whose pool has Google's own installation disabled; after the
 * manifest `daemonset-preloaded` of GoogleCloudPlatform/container-engine-accelerators. It is privileged and in kube-system:
 * it loads a kernel module.
 */
export class GpuDriver extends pulumi.ComponentResource {
  public readonly daemonSet: k8s.apps.v1.DaemonSet;

  constructor(name: string, args: GpuDriverArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:GpuDriver", name, {}, opts);
    const labels = { "k8s-app": "nvidia-driver-installer" };
    this.daemonSet = new k8s.apps.v1.DaemonSet(
      name,
      {
        metadata: { name: "nvidia-driver-installer", namespace: "kube-system", labels },
        spec: {
          selector: { matchLabels: labels },
          updateStrategy: { type: "RollingUpdate" },
          template: { metadata: { labels }, spec: installerPod(args) },
        },
      },
      dropsWithCluster(this, args),
    );
    this.registerOutputs({});
  }
}

function installerPod(args: GpuDriverArgs): k8s.types.input.core.v1.PodSpec {
  return {
    priorityClassName: "system-node-critical",
    hostNetwork: true,
    hostPID: true,
    automountServiceAccountToken: false,
    tolerations: [{ operator: "Exists" }],
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            {
              matchExpressions: [
                { key: "cloud.google.com/gke-accelerator", operator: "Exists" },
                // Present when Google installs the driver: two installers on one node mask each other.
                { key: "cloud.google.com/gke-gpu-driver-version", operator: "DoesNotExist" },
                { key: "cloud.google.com/gke-confidential-nodes-instance-type", operator: "DoesNotExist" },
              ],
            },
          ],
        },
      },
    },
    volumes: [
      hostPath("dev", "/dev"),
      hostPath("vulkan-icd", `${hostFolder}/vulkan/icd.d`),
      hostPath("nvidia-install", hostFolder),
      hostPath("root", "/"),
      hostPath("cos-tools", "/var/lib/cos-tools"),
    ],
    initContainers: [
      {
        name: "nvidia-driver-installer",
        image: images.cosGpuInstaller,
        imagePullPolicy: "Never",
        securityContext: { privileged: true },
        resources: { requests: { cpu: "150m", memory: "128Mi" } },
        env: [
          { name: "NVIDIA_INSTALL_DIR_HOST", value: hostFolder },
          { name: "NVIDIA_INSTALL_DIR_CONTAINER", value: installerFolder },
          { name: "VULKAN_ICD_DIR_HOST", value: `${hostFolder}/vulkan/icd.d` },
          { name: "VULKAN_ICD_DIR_CONTAINER", value: "/etc/vulkan/icd.d" },
          { name: "ROOT_MOUNT_DIR", value: "/root" },
          { name: "COS_TOOLS_DIR_HOST", value: "/var/lib/cos-tools" },
          { name: "COS_TOOLS_DIR_CONTAINER", value: "/build/cos-tools" },
        ],
        command: ["bash", "-c", installCommand],
        volumeMounts: [
          { name: "nvidia-install", mountPath: installerFolder },
          { name: "vulkan-icd", mountPath: "/etc/vulkan/icd.d" },
          { name: "dev", mountPath: "/dev" },
          { name: "root", mountPath: "/root" },
          { name: "cos-tools", mountPath: "/build/cos-tools" },
        ],
      },
    ],
    containers: [
      {
        name: "pause",
        image: pinned(images.pause, args.digests),
        resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { memory: "32Mi" } },
      },
    ],
  };
}

function hostPath(name: string, path: string): k8s.types.input.core.v1.Volume {
  return { name, hostPath: { path } };
}

/**
 * The default driver version of the node image. A loaded module is never replaced in place, so there is nothing to do where
 * one is: another version needs new nodes.
 */
const installCommand = `if lsmod | grep -q nvidia; then exit 0; fi; /cos-gpu-installer install && chmod 755 /root${hostFolder}`;
