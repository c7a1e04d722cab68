package bench;

/** Something that can be done again and again, always with the same result. */
interface Workload {
    /** Does it once. The result must be the same each time, profiled or not. */
    long iterate() throws Exception;
}
