import { describe, expect, it } from "vitest";
import { cutKinds } from "../../tools/provider-sources";

const source = `package v2

import (
	"fmt"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	appsv1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apps/v1"
)

func RegisterResource(x int) error {
	switch fullKind {
	case "apps/v1/Deployment":
		var res appsv1.Deployment
		return nil
	default:
		var res apiextensions.CustomResource
		return nil
	}
}
`;

describe("cutKinds", () => {
  it("keeps the generic branch alone, gives core kinds their group, and drops the imports of the typed packages", () => {
    const cut = cutKinds(source);
    expect(cut).not.toContain("appsv1");
    expect(cut).toContain('if apiVersion == "v1" {\n\t\t\tapiVersion = "core/v1"');
    expect(cut).toContain('kubernetes/apiextensions"');
    expect(cut).toContain("switch fullKind {\n\tdefault:");
  });

  it("says so when the file is another than it knows", () => {
    expect(() => cutKinds("package v2")).toThrow("has changed");
  });
});
