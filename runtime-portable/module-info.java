/** What programs that {@code tare instrument} wove call. */
module tare.runtime {
    exports tare.runtime;
}
