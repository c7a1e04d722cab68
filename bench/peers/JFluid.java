import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.graalvm.visualvm.lib.jfluid.ProfilerEngineSettings;
import org.graalvm.visualvm.lib.jfluid.TargetAppRunner;
import org.graalvm.visualvm.lib.jfluid.client.AppStatusHandler;
import org.graalvm.visualvm.lib.jfluid.client.ClientUtils;
import org.graalvm.visualvm.lib.jfluid.client.ProfilingPointsProcessor;
import org.graalvm.visualvm.lib.jfluid.client.RuntimeProfilingPoint;
import org.graalvm.visualvm.lib.jfluid.filters.GenericFilter;
import org.graalvm.visualvm.lib.jfluid.filters.JavaTypeFilter;
import org.graalvm.visualvm.lib.jfluid.global.CommonConstants;
import org.graalvm.visualvm.lib.jfluid.global.Platform;
import org.graalvm.visualvm.lib.jfluid.results.ProfilingResultsDispatcher;
import org.graalvm.visualvm.lib.jfluid.results.cpu.CPUCallGraphBuilder;
import org.graalvm.visualvm.lib.jfluid.results.cpu.CPUResultsSnapshot;
import org.graalvm.visualvm.lib.jfluid.results.cpu.FlatProfileBuilder;
import org.graalvm.visualvm.lib.jfluid.results.cpu.FlatProfileContainer;

/**
 * VisualVM's instrumenting profiler without its windows: starts a program under it, whose input and output are
 * ours, and says on standard error what was recorded.
 *
 * <p>{@code JFluid LIBRARIES calibrate}, once for a JDK on a machine; then
 * {@code JFluid LIBRARIES PORT whole|root|methods CLASS METHOD SIGNATURE FILTER JAVA-ARGUMENT…}. With
 * {@code methods} everything is instrumented, and each method's calls and own time are told.
 */
public final class JFluid {
    private static TargetAppRunner runner;
    private static boolean tellsMethods;

    private JFluid() {}

    public static void main(String[] args) throws Exception {
        ProfilerEngineSettings settings = settings(args[0]);
        runner = new TargetAppRunner(settings, new Quiet(), new NoPoints());
        if (args[1].equals("calibrate")) {
            settings.setPortNo(5140);
            System.err.println("calibrated: " + runner.calibrateInstrumentationCode());
            System.exit(0);
        }
        settings.setPortNo(Integer.parseInt(args[1]));
        tellsMethods = args[2].equals("methods");
        boolean whole = tellsMethods || args[2].equals("whole");
        settings.setInstrScheme(
                whole ? CommonConstants.INSTRSCHEME_TOTAL : CommonConstants.INSTRSCHEME_LAZY);
        ClientUtils.SourceCodeSelection[] roots = {
            new ClientUtils.SourceCodeSelection(args[3], args[4], args[5])
        };
        settings.setInstrumentationRootMethods(roots);
        settings.setInstrumentationFilter(
                new JavaTypeFilter(args[6], GenericFilter.TYPE_INCLUSIVE));
        listen();
        runner.readSavedCalibrationData();
        runner.getProfilerClient().initiateRecursiveCPUProfInstrumentation(roots);
        Process target = start(settings, Arrays.asList(args).subList(7, args.length));
        Runtime.getRuntime().addShutdownHook(new Thread(target::destroyForcibly));
        runner.initiateSession(1, false);
        System.err.println("attached: " + runner.attachToTargetVMOnStartup());
        target.waitFor();
        System.exit(0);
    }

    private static ProfilerEngineSettings settings(String libraries) throws Exception {
        ProfilerEngineSettings settings = new ProfilerEngineSettings();
        settings.initialize(libraries);
        settings.setTargetJVMExeFile(System.getProperty("java.home") + "/bin/java");
        settings.setTargetJDKVersionString(
                Platform.getJDKVersionString(System.getProperty("java.version")));
        settings.setSystemArchitecture(Platform.getSystemArchitecture());
        settings.setWorkingDir(new File(".").getAbsolutePath());
        settings.setSeparateConsole(false);
        settings.setJVMArgs("");
        settings.setMainArgs("");
        settings.setMainClass("bench.Main");
        settings.setVMClassPaths("", "", "");
        // What its windows offer by default, with times of every call.
        settings.setCPUProfilingType(CommonConstants.CPU_INSTR_FULL);
        settings.setInstrumentSpawnedThreads(true);
        settings.setInstrumentEmptyMethods(false);
        settings.setInstrumentGetterSetterMethods(false);
        settings.setInstrumentMethodInvoke(true);
        settings.setExcludeWaitTime(true);
        settings.setAbsoluteTimerOn(true);
        settings.setThreadCPUTimerOn(false);
        return settings;
    }

    private static void listen() {
        CPUCallGraphBuilder tree = new CPUCallGraphBuilder();
        FlatProfileBuilder list = new FlatProfileBuilder();
        tree.addListener(list);
        list.setContext(runner.getProfilerClient(), null, null);
        ProfilingResultsDispatcher.getDefault().addListener(tree);
        tree.startup(runner.getProfilerClient());
    }

    private static Process start(ProfilerEngineSettings settings, List<String> arguments)
            throws Exception {
        String library = Platform.getAgentNativeLibFullName(
                settings.getJFluidRootDirName(), false, settings.getTargetJDKVersionString(), -1);
        String place = library.substring(0, library.indexOf("deployed") - 1);
        List<String> command = new ArrayList<>();
        command.add(settings.getTargetJVMExeFile());
        command.add("-agentpath:" + library + "=" + place + "," + settings.getPortNo() + ",10");
        command.addAll(arguments);
        return new ProcessBuilder(command).inheritIO().start();
    }

    /** Says how much was seen, so that a run in which nothing was is no measurement. */
    private static void report() throws Exception {
        Thread.sleep(300);
        if (!runner.getProfilerClient().cpuResultsExist()) {
            System.err.println("recorded: nothing");
            return;
        }
        CPUResultsSnapshot snapshot = runner.getProfilerClient().getCPUProfilingResultsSnapshot();
        FlatProfileContainer list =
                snapshot.getFlatProfile(-1, CPUResultsSnapshot.METHOD_LEVEL_VIEW);
        long calls = 0;
        for (int row = 0; row < list.getNRows(); row++) {
            calls += list.getNInvocationsAtRow(row);
            if (tellsMethods) {
                String name = list.getMethodNameAtRow(row).split("[ (]", 2)[0];
                System.err.println("method " + name + " " + list.getNInvocationsAtRow(row) + " "
                        + list.getTimeInMcs0AtRow(row));
            }
        }
        System.err.println("recorded: " + calls + " calls of " + list.getNRows() + " methods");
    }

    /** Nobody is there to answer questions. */
    private static final class Quiet implements AppStatusHandler {
        @Override
        public AsyncDialog getAsyncDialogInstance(String text, boolean progress, Runnable cancel) {
            return new AsyncDialog() {
                @Override
                public void close() {}

                @Override
                public void display() {}
            };
        }

        @Override
        public boolean confirmWaitForConnectionReply() {
            return true;
        }

        private static void say(String text) {
            System.err.println("VisualVM: " + text);
        }

        @Override
        public void displayError(String text) {
            say(text);
        }

        @Override
        public void displayErrorAndWaitForConfirm(String text) {
            say(text);
        }

        @Override
        public void displayErrorWithDetailsAndWaitForConfirm(String text, String details) {
            say(text + " " + details);
        }

        @Override
        public void displayNotification(String text) {
            say(text);
        }

        @Override
        public void displayNotificationAndWaitForConfirm(String text) {
            say(text);
        }

        @Override
        public void displayNotificationWithDetailsAndWaitForConfirm(String text, String details) {
            say(text);
        }

        @Override
        public void displayWarning(String text) {
            say(text);
        }

        @Override
        public void displayWarningAndWaitForConfirm(String text) {
            say(text);
        }

        @Override
        public void handleShutdown() {
            try {
                report();
            } catch (Exception e) {
                say(e.toString());
            }
        }

        @Override
        public void pauseLiveUpdates() {}

        @Override
        public void resultsAvailable() {}

        @Override
        public void resumeLiveUpdates() {}

        @Override
        public void takeSnapshot() {}
    }

    private static final class NoPoints extends ProfilingPointsProcessor {
        @Override
        public void profilingPointHit(RuntimeProfilingPoint.HitEvent event) {}

        @Override
        public void timeAdjust(int thread, long time, long adjust) {}

        @Override
        public RuntimeProfilingPoint[] getSupportedProfilingPoints() {
            return new RuntimeProfilingPoint[0];
        }

        @Override
        public void init(Object project) {}
    }
}
