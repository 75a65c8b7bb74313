import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

export interface BudgetArgs {
  readonly project: string;
  /** Billing account id, `XXXXXX-XXXXXX-XXXXXX`. A change replaces the budget. */
  readonly billingAccount: string;
  /** Amount a month, whole units of `currency`. */
  readonly amountPerMonth: number;
  /** ISO 4217 code; must be the billing account's currency. */
  readonly currency: string;
}

/** Alerts at half, nine tenths and all of the amount, and when the forecast passes it. It alerts; it stops nothing. */
export class Budget extends pulumi.ComponentResource {
  constructor(name: string, args: BudgetArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:Budget", name, args, opts);
    const number = gcp.organizations.getProjectOutput({ projectId: args.project }, { parent: this }).number;
    new gcp.billing.Budget(
      name,
      {
        billingAccount: args.billingAccount,
        displayName: `${args.project} ${name}`,
        budgetFilter: { projects: [pulumi.interpolate`projects/${number}`] },
        amount: { specifiedAmount: { currencyCode: args.currency, units: String(args.amountPerMonth) } },
        thresholdRules: [
          { thresholdPercent: 0.5 },
          { thresholdPercent: 0.9 },
          { thresholdPercent: 1 },
          { thresholdPercent: 1, spendBasis: "FORECASTED_SPEND" },
        ],
      },
      { parent: this },
    );
    this.registerOutputs({});
  }
}
