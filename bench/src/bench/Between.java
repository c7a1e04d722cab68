package bench;

/** A root that reaches nothing, for recordings of which the workload is no part. */
final class Between {
    private Between() {}

    static void iterations() {}
}
