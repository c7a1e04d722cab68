package bench;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.pdfbox.Loader;
import org.apache.pdfbox.pdmodel.PDDocument;
import org.apache.pdfbox.pdmodel.PDPage;
import org.apache.pdfbox.pdmodel.PDPageContentStream;
import org.apache.pdfbox.pdmodel.common.PDRectangle;
import org.apache.pdfbox.pdmodel.font.PDType1Font;
import org.apache.pdfbox.pdmodel.font.Standard14Fonts;
import org.apache.pdfbox.text.PDFTextStripper;

/** PDFBox: a document is written, read again, and its text taken out. */
final class Pdfbox implements Workload {
    private final int pages;

    Pdfbox(String[] args) {
        pages = Integer.parseInt(args[0]);
        System.setProperty("java.awt.headless", "true");
    }

    @Override
    public long iterate() throws IOException {
        try (PDDocument document = Loader.loadPDF(written())) {
            return new PDFTextStripper().getText(document).hashCode();
        }
    }

    private byte[] written() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (PDDocument document = new PDDocument()) {
            PDType1Font font = new PDType1Font(Standard14Fonts.FontName.HELVETICA);
            for (int number = 0; number < pages; number++) {
                PDPage page = new PDPage(PDRectangle.A4);
                document.addPage(page);
                try (PDPageContentStream content = new PDPageContentStream(document, page)) {
                    content.beginText();
                    content.setFont(font, 10);
                    content.setLeading(12);
                    content.newLineAtOffset(40, 800);
                    for (int line = 0; line < 60; line++) {
                        content.showText("Page " + number + ", line " + line + ": order "
                                + number * 7919 % 1009 + " of customer " + line * 37 % 101);
                        content.newLine();
                    }
                    content.endText();
                }
            }
            document.save(bytes);
        }
        return bytes.toByteArray();
    }
}
