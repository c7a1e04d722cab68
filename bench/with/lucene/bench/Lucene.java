package bench;

import java.io.IOException;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.IntPoint;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

/** Lucene: documents are put into an index in memory, and looked for. */
final class Lucene implements Workload {
    private static final String[] WORDS = {
        "order", "ship", "harbour", "crane", "paper", "ledger", "weight", "scale", "grain", "cloth",
        "iron", "barrel", "night", "watch", "river", "bridge", "stone", "market", "copper", "salt"
    };

    private final int documents;

    Lucene(String[] args) {
        documents = Integer.parseInt(args[0]);
    }

    @Override
    public long iterate() throws IOException {
        try (Directory directory = new ByteBuffersDirectory()) {
            index(directory);
            return search(directory);
        }
    }

    private void index(Directory directory) throws IOException {
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer());
        config.setMergeScheduler(new SerialMergeScheduler());
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            int seed = 1;
            for (int i = 0; i < documents; i++) {
                StringBuilder text = new StringBuilder();
                for (int word = 0; word < 60; word++) {
                    seed = seed * 1103515245 + 12345;
                    text.append(WORDS[(seed >>> 16) % WORDS.length]).append(seed >>> 28).append(' ');
                }
                Document document = new Document();
                document.add(new StringField("id", "d" + i, Field.Store.YES));
                document.add(new TextField("body", text.toString(), Field.Store.NO));
                document.add(new IntPoint("year", 1700 + i % 200));
                writer.addDocument(document);
            }
        }
    }

    private static long search(Directory directory) throws IOException {
        long found = 0;
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (int i = 0; i < WORDS.length * 8; i++) {
                String word = WORDS[i % WORDS.length] + i % 16;
                String other = WORDS[i * 7 % WORDS.length] + i % 11;
                Query both = new BooleanQuery.Builder()
                        .add(new TermQuery(new Term("body", word)), BooleanClause.Occur.MUST)
                        .add(new TermQuery(new Term("body", other)), BooleanClause.Occur.SHOULD)
                        .add(IntPoint.newRangeQuery("year", 1750, 1850), BooleanClause.Occur.FILTER)
                        .build();
                Query prefix = new PrefixQuery(new Term("body", WORDS[i % WORDS.length]));
                for (Query query : new Query[] {both, prefix, new PhraseQuery("body", word, other)}) {
                    TopDocs top = searcher.search(query, 10);
                    found += top.totalHits.value;
                    for (var hit : top.scoreDocs) {
                        found += searcher.storedFields().document(hit.doc).get("id").length();
                    }
                }
            }
        }
        return found;
    }
}
