import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import * as components from "../../components";
import { stackServices } from "../../components/project-services";
import type { StackConfig } from "../derived-config";
import { shortNameOf } from "../short-name";

/** The Google Cloud project as the other sections use it. */
export interface Project {
  /** The stack's name as part of account and repository ids. */
  readonly shortName: string;
  /** Component options: the explicit provider, and what must exist before. */
  readonly after: (...dependsOn: readonly pulumi.Resource[]) => pulumi.ComponentResourceOptions;
  readonly services: components.ProjectServices;
  readonly accounts: components.ServiceAccounts;
}

/** APIs, service accounts, and a budget alert if there is a budget. */
export function createProject(config: StackConfig): Project {
  const { project } = config;
  const provider = new gcp.Provider("google", googleProviderArgs(config));
  const after = (...dependsOn: readonly pulumi.Resource[]) => ({
    providers: [provider],
    dependsOn: [...dependsOn],
  });
  const services = new components.ProjectServices(
    "services",
    { project, services: servicesOf(config) },
    after(),
  );
  const shortName = shortNameOf(pulumi.getStack());
  const accounts = new components.ServiceAccounts(
    "accounts",
    { project, prefix: shortName, converter: config.conversionVm },
    after(services),
  );
  if (config.budget > 0) {
    const { billingAccount, budget, budgetCurrency } = config;
    new components.Budget(
      "budget",
      { project, billingAccount, amountPerMonth: budget, currency: budgetCurrency },
      after(services),
    );
  }
  return { shortName, after, services, accounts };
}

function googleProviderArgs(config: StackConfig): gcp.ProviderArgs {
  const { project, region, zonesUsed } = config;
  // Budgets are charged to the caller's project, which user credentials do not have without these two.
  const billing = config.budget > 0 ? { billingProject: project, userProjectOverride: true } : {};
  return { project, region, zone: zonesUsed[0], ...billing };
}

function servicesOf(config: StackConfig): string[] {
  return config.budget > 0 ? [...stackServices, "billingbudgets.googleapis.com"] : [...stackServices];
}
